//! Peers of each kind, and an agent that delegates to them.

pub(crate) mod a2a;
pub(crate) mod acp;

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use agent::{
    Agent, AgentBuilder, AssistantMessage, Block, Checkpoint, Error, ErrorKind, Finished, Message, Model, ModelRequest,
    ModelResponse, Result, RunEnd, Tool, ToolOptions, ToolOutput, ToolRequest, async_trait,
    middleware::Delegation,
    model::ModelInfo,
    tool::ToolSpec,
    tools::peers::{AcpAgent, AcpBuilder},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::a2a::{How, Server};

pub(crate) fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Longest time that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    InProcess,
    Acp,
    A2aPolled,
    A2aStreamed,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::InProcess, Kind::Acp, Kind::A2aPolled, Kind::A2aStreamed];

/// Lines that a peer of this process notes.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A peer, and what it has done: it outlives the process that calls it.
pub(crate) struct Peer {
    kind: Kind,
    home: TempDir,
    server: Server,
    log: Log,
}

impl Peer {
    pub(crate) async fn start(kind: Kind) -> Self {
        let how = How { streams: kind == Kind::A2aStreamed, has_history: true, ..How::default() };
        let home = tempfile::tempdir().expect("a directory");
        Self { kind, home, server: Server::start(how).await, log: Log::default() }
    }

    /// The peer as an agent, as a new process has it.
    pub(crate) fn agent(&self) -> AgentBuilder {
        match self.kind {
            Kind::InProcess => local(&self.log),
            Kind::Acp => Agent::of_tool("peer", program(self.home.path()).build().expect("builds")),
            Kind::A2aPolled | Kind::A2aStreamed => Agent::of_tool("peer", self.server.agent()),
        }
    }

    /// Received messages, and whether the run was cancelled.
    pub(crate) fn log(&self) -> Vec<String> {
        match self.kind {
            Kind::InProcess => self.log.lock().expect("not poisoned").clone(),
            Kind::Acp => acp::log(self.home.path()),
            Kind::A2aPolled | Kind::A2aStreamed => self.server.log(),
        }
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.log().iter().filter(|noted| *noted == line).count()
    }

    /// Waits until it noted this.
    pub(crate) async fn noted(&self, line: &str) {
        let noted = async {
            while self.count(line) == 0 {
                tokio::time::sleep(ms(5)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, noted).await;
        assert!(in_time.is_ok(), "{:?} did not note '{line}': {:?}", self.kind, self.log());
    }
}

pub(crate) fn program(home: &Path) -> AcpBuilder {
    AcpAgent::builder(acp::program(home))
}

/// An agent that has its peer do what `task` says, and tells what came of it.
pub(crate) fn boss(peer: AgentBuilder, task: &'static str) -> AgentBuilder {
    let peer = peer.build().expect("builds");
    Agent::builder("boss", Boss(task)).middleware(Delegation::new().recall().to("peer", "Helps.", peer))
}

struct Boss(&'static str);

#[async_trait]
impl Model for Boss {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("boss")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let message: AssistantMessage = match req.messages.last() {
            Some(result @ Message::Tool(_)) => result.text().as_str().into(),
            _ => {
                let args = json!({"agent": "peer", "message": self.0});
                AssistantMessage::new(vec![Block::tool_call("c1", "delegate", args.to_string())])
            }
        };
        Ok(ModelResponse::new(message))
    }
}

/// An agent of this process that does what the doubles of the others do.
fn local(log: &Log) -> AgentBuilder {
    Agent::builder("peer", Local).tool(Work(log.clone()))
}

struct Local;

#[async_trait]
impl Model for Local {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("local")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let said = req.messages.last().map(Message::text).unwrap_or_default();
        let message: AssistantMessage = match req.messages.last() {
            Some(Message::Tool(_)) => said.as_str().into(),
            _ if said == "fail" => return Err(Error::new(ErrorKind::InvalidRequest, "no luck")),
            _ => AssistantMessage::new(vec![Block::tool_call("w", "work", json!({"task": said}).to_string())]),
        };
        Ok(ModelResponse::new(message))
    }
}

struct Work(Log);

/// Notes that the work was dropped before it was done.
struct Dropped(Option<Log>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(log) = self.0.take() {
            log.lock().expect("not poisoned").push("cancelled".to_owned());
        }
    }
}

#[async_trait]
impl Tool for Work {
    fn spec(&self) -> ToolSpec {
        let task = json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]});
        ToolSpec::new("work", "Works.", task)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default()
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let task = req.args["task"].as_str().unwrap_or_default().to_owned();
        let note = |line: &str| self.0.lock().expect("not poisoned").push(line.to_owned());
        match &*task {
            "ask" => {
                let answer: String = req.ask("choice", json!({}))?;
                note("ask");
                Ok(ToolOutput::text(format!("the answer: {answer}")))
            }
            "hang" => {
                note("hang");
                let _dropped = Dropped(Some(self.0.clone()));
                std::future::pending().await
            }
            _ => {
                note(&task);
                Ok(ToolOutput::text(format!("you said {task}")))
            }
        }
    }
}

pub(crate) fn finished(end: Result<RunEnd>) -> Finished {
    match end {
        Ok(RunEnd::Finished(finished)) => *finished,
        other => panic!("not finished: {other:?}"),
    }
}

pub(crate) fn interrupted(end: Result<RunEnd>) -> Checkpoint {
    match end {
        Ok(RunEnd::Interrupted(checkpoint)) => *checkpoint,
        other => panic!("not interrupted: {other:?}"),
    }
}

/// The same answer to each question.
pub(crate) fn answers(checkpoint: &Checkpoint, answer: &Value) -> Vec<(String, Value)> {
    checkpoint.questions.iter().map(|question| (question.id.clone(), answer.clone())).collect()
}
