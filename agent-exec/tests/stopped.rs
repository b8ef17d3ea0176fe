//! A process that is stopped between what it wrote down and what it does, and wakes up when its session is another's.

#![cfg(unix)]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use agent_core::{
    BoxFuture, Effect, Error, Journal, Result, RunEnd, RunRequest, Tool, ToolOptions, ToolOutput, ToolRequest,
    ToolSpec, WhenBusy, async_trait,
    journal::{Ack, Entry, EntryBody, JournalWriter},
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_store::SqliteJournal;
use nix::{
    sys::signal::{Signal, kill, raise},
    unistd::Pid,
};
use serde_json::json;

const PLACE: &str = "AGENT_EXEC_STOPPED_PLACE";
const SESSION: &str = "s";

/// Pays, which nobody can see afterwards.
struct Pay(std::path::PathBuf);

#[async_trait]
impl Tool for Pay {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::AtMostOnce)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        let paid = fs::OpenOptions::new().create(true).append(true).open(&self.0);
        paid.and_then(|mut paid| paid.write_all(b"paid ")).map_err(|e| Error::tool("no file").with_source(e))?;
        Ok(ToolOutput::text("paid"))
    }
}

/// A journal whose process is stopped when a run has the acknowledgement of an intent in its hands.
struct Stops(SqliteJournal);

struct StopsWriter(Arc<dyn JournalWriter>);

#[async_trait]
impl Journal for Stops {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(StopsWriter(self.0.open(session, agent).await?)))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.0.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.0.delete(session).await
    }
}

impl JournalWriter for StopsWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let is_intent = entries.iter().any(|entry| matches!(entry.body, EntryBody::ToolStarted { .. }));
        let ack = self.0.append(entries);
        Ack::Later(Box::pin(async move {
            let first = ack.await?;
            if is_intent {
                say("stops");
                raise(Signal::SIGSTOP).expect("stops");
            }
            Ok(first)
        }))
    }

    fn prove(&self) -> BoxFuture<'static, Result<()>> {
        self.0.prove()
    }
}

fn say(line: &str) {
    writeln!(io::stdout(), "\n{line}").expect("the parent listens");
}

fn journal(dir: &Path) -> SqliteJournal {
    let builder = SqliteJournal::builder(dir.join("agent.db")).lease_ttl(Duration::from_secs(1));
    builder.open().expect("opens")
}

fn agent(journal: impl Journal, dir: &Path, turns: impl IntoIterator<Item = Turn>) -> Agent {
    let agent = Agent::builder("payer", ScriptedModel::new(turns)).tool(Pay(dir.join("paid"))).store(journal);
    agent.when_busy(WhenBusy::queue()).build().expect("builds")
}

/// Runs until it is stopped, and then to the end. Run by the test below, in a process of its own.
#[tokio::test]
#[ignore = "is stopped, and waits for the test that goes on with it"]
async fn child() {
    let dir = env::var_os(PLACE).expect("the parent says where");
    let dir = Path::new(&dir);
    let agent = agent(Stops(journal(dir)), dir, [Turn::call("1", "pay", json!({})), Turn::text("done")]);
    match agent.start(RunRequest::user("Pay.").session(SESSION)).await {
        Ok(end) => say(&format!("ended {}", end.as_str())),
        Err(e) => say(&format!("ended {e}")),
    }
}

/// The other process, which dies with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_stopped_process_that_wakes_up_when_its_session_is_anothers_does_not_do_what_it_wrote_down() {
    let dir = tempfile::tempdir().expect("a directory");
    let child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, dir.path())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Process(child.expect("starts"));
    let mut lines = BufReader::new(child.0.stdout.take().expect("is piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "stops"), "it came to its intent");
    // It renews its lease until it is stopped indeed, so that the session is free only then, and a second later.
    let heir = agent(journal(dir.path()), dir.path(), [Turn::text("done")]);
    let end = heir.start(RunRequest::recover(SESSION, [] as [(String, serde_json::Value); 0])).await.expect("goes on");
    let RunEnd::Interrupted(stands) = end else { panic!("nobody was asked: {end:?}") };
    let pid = Pid::from_raw(child.0.id().try_into().expect("a process"));
    kill(pid, Signal::SIGCONT).expect("wakes up");
    let said = lines.find(|line| line.starts_with("ended ")).expect("it comes to its end");
    assert!(said.contains("the lease of agent 'payer' in session 's' was lost to another process"), "{said}");
    assert!(!dir.path().join("paid").exists(), "it paid in silence");
    let answers = stands.questions.iter().map(|question| (question.id.clone(), json!("did_not")));
    let end = heir.start(RunRequest::recover(SESSION, answers)).await.expect("goes on");
    assert_eq!(end.as_str(), "finished");
    assert_eq!(fs::read_to_string(dir.path().join("paid")).expect("reads"), "paid ");
}
