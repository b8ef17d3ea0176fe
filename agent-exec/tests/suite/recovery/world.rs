//! A tree of three agents with tools of every effect, and an outside world that counts the effects
//! on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use agent_core::{
    AssistantMessage, Block, Budget, Caps, Effect, Finished, Flow, History, Journal, MemoryJournal, Message,
    Middleware, Model, ModelInfo, ModelRequest, ModelResponse, Result, RunCx, RunEnd, RunRequest, Tool, ToolOptions,
    ToolOutput, ToolRequest, ToolSpec, Usage, async_trait, tool::Reconciled,
};
use agent_exec::Agent;
use agent_middleware::Delegation;
use serde_json::{Value, json};

pub(crate) const SESSION: &str = "s";

/// Number of effects on the outside world under each idempotency key.
#[derive(Clone, Default)]
pub(crate) struct Outside(pub(crate) Arc<Mutex<BTreeMap<String, u32>>>);

impl Outside {
    fn count(&self, key: &str) -> u32 {
        self.0.lock().expect("lock").get(key).copied().unwrap_or(0)
    }
}

/// A tool with an effect on the outside world.
pub(crate) struct Marks {
    name: &'static str,
    effect: Effect,
    outside: Outside,
}

#[async_trait]
impl Tool for Marks {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({"type": "object", "additionalProperties": true}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(self.effect).writes("log", Some("entry"))
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let key = format!("{}/{}/{}", req.cx.ids().agent, req.cx.step(), req.call.id);
        let again = self.outside.count(&key) > 0;
        // A tool that knows the key acts once.
        if !(again && self.effect == Effect::Idempotent) {
            *self.outside.0.lock().expect("lock").entry(key.clone()).or_default() += 1;
        }
        tokio::task::yield_now().await;
        Ok(ToolOutput::value(json!({"content": format!("{} done", self.name), "entry": [key]})))
    }

    async fn reconcile(&self, req: ToolRequest) -> Result<Reconciled> {
        let key = format!("{}/{}/{}", req.cx.ids().agent, req.cx.step(), req.call.id);
        Ok(match self.outside.count(&key) {
            0 => Reconciled::DidNot,
            _ => Reconciled::Happened(ToolOutput::value(
                json!({"content": format!("{} done", self.name), "entry": [key]}),
            )),
        })
    }
}

/// A model that responds according to the step that the conversation is in.
pub(crate) struct Steps(Vec<AssistantMessage>);

impl Steps {
    pub(crate) fn new(steps: Vec<Vec<(&str, &str, Value)>>) -> Self {
        let block = |(id, name, args): (&str, &str, Value)| Block::tool_call(id, name, args.to_string());
        let message = |calls: Vec<_>| AssistantMessage::new(calls.into_iter().map(block).collect());
        Self(steps.into_iter().map(message).chain(["done".into()]).collect())
    }
}

#[async_trait]
impl Model for Steps {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("steps")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        Ok(ModelResponse::new(self.0[step].clone()).with_usage(Usage::new(3, 2)))
    }
}

/// A model that repeats its input.
struct Echo;

#[async_trait]
impl Model for Echo {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("echo")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let told = req.messages.last().map(Message::text).unwrap_or_default();
        Ok(ModelResponse::new(told.as_str()).with_usage(Usage::new(1, 1)))
    }
}

/// Calls a side model once per run.
struct Opinion;

#[async_trait]
impl Middleware for Opinion {
    fn name(&self) -> &str {
        "opinion"
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if cx.step() == 2 {
            cx.decide("opinion", async {
                let mut request = ModelRequest::new(cx.clone());
                request.messages = History::from_messages([Message::user("fine")])?;
                Ok(cx.call_model(&Echo, request).await?.message.text().into())
            })
            .await?;
        }
        Ok(Flow::Continue)
    }
}

/// Builds the tree anew, as each process does.
pub(crate) fn tree(journal: impl Journal, outside: &Outside) -> Agent {
    let tools = |builder: agent_exec::AgentBuilder| {
        let marks = |name, effect| Marks { name, effect, outside: outside.clone() };
        let schema = agent_core::StateSchema::default().key("log", agent_core::StateField::of::<Vec<String>>());
        builder
            .state(schema)
            .tool(marks("pure", Effect::Pure))
            .tool(marks("idempotent", Effect::Idempotent))
            .tool(marks("reconcilable", Effect::Reconcilable))
            .tool(marks("once", Effect::AtMostOnce))
    };
    let call = |id, name| (id, name, json!({}));
    let ask = |id, agent: &str| (id, "delegate", json!({"agent": agent, "message": "help"}));
    let leaf = Steps::new(vec![vec![call("l1", "once"), call("l2", "reconcilable")], vec![call("l3", "once")]]);
    let leaf = tools(Agent::builder("leaf", leaf)).build().expect("builds");
    let middle = Steps::new(vec![vec![ask("m1", "leaf"), call("m2", "once")], vec![call("m3", "idempotent")]]);
    let middle = tools(Agent::builder("middle", middle))
        .middleware(Delegation::new().to("leaf", "Helps.", leaf))
        .build()
        .expect("builds");
    let root = Steps::new(vec![
        vec![call("r1", "pure"), call("r2", "once"), call("r3", "reconcilable")],
        vec![ask("r4", "middle"), call("r5", "idempotent")],
        // Some models use an id again in a later turn.
        vec![call("r6", "once"), ("r4", "delegate", json!({"agent": "echo", "message": "an answer of its own"}))],
    ]);
    let echo = Agent::builder("echo", Echo).build().expect("builds");
    tools(Agent::builder("root", root))
        .budget(Budget::new(Caps::default().tokens(1_000_000)))
        .middleware(Opinion)
        .middleware(Delegation::new().to("middle", "Helps.", middle).to("echo", "Repeats.", echo))
        .store(journal)
        .build()
        .expect("builds")
}

/// The questions that were asked.
#[derive(Debug, Default)]
pub(crate) struct Asked(pub(crate) BTreeSet<String>);

/// Resumes the run, process after process, until it is finished; questions are answered from the
/// state of the outside world.
pub(crate) async fn finish(journal: &MemoryJournal, outside: &Outside, asked: &mut Asked) -> Finished {
    finish_as(journal.clone(), journal, outside, asked).await
}

/// As [`finish`], in processes that write to `store`.
pub(crate) async fn finish_as(
    store: impl Journal + Clone,
    journal: &MemoryJournal,
    outside: &Outside,
    asked: &mut Asked,
) -> Finished {
    loop {
        let agent = tree(store.clone(), outside);
        let questions = agent.unfinished(SESSION).await.expect("reads").map(|c| c.questions).unwrap_or_default();
        let answers = questions.iter().map(|question| {
            asked.0.insert(question.id.clone());
            let key = question.payload["idempotency_key"].as_str().expect("a key");
            let (step, call) = key.split_once('/').and_then(|(_, rest)| rest.split_once('/')).expect("a key of three");
            let agent = match &call[..1] {
                "r" => "root",
                "m" => "middle",
                _ => "leaf",
            };
            let mark = format!("{agent}/{step}/{call}");
            let answer = match outside.count(&mark) {
                0 => json!("did_not"),
                _ => json!({"happened": {"content": "once done", "entry": [mark]}}),
            };
            (question.id.clone(), answer)
        });
        let request = match journal.sessions().await.expect("reads").is_empty() {
            true => RunRequest::user("go").session(SESSION),
            false => RunRequest::recover(SESSION, answers.collect::<Vec<_>>()),
        };
        match agent.start(request).await.expect("does not fail") {
            RunEnd::Finished(finished) => return *finished,
            other => assert_eq!(other.as_str(), "interrupted"),
        }
    }
}
