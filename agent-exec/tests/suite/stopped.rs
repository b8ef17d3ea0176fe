//! A process that is suspended between recording an intent and acting on it, and wakes up when
//! another process owns its session.

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
/// If set, suspends the process in a tool's call, otherwise before it.
const IN_CALL: &str = "AGENT_EXEC_STOPPED_IN_CALL";
const SESSION: &str = "s";

/// Pays, which cannot be observed afterwards.
struct Pay {
    paid: std::path::PathBuf,
    /// Suspends the process before it pays.
    stops: bool,
}

#[async_trait]
impl Tool for Pay {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::AtMostOnce)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        if self.stops {
            stop();
            req.verify_lease().await?;
        }
        let paid = fs::OpenOptions::new().create(true).append(true).open(&self.paid);
        paid.and_then(|mut paid| paid.write_all(b"paid ")).map_err(|e| Error::tool("no file").with_source(e))?;
        Ok(ToolOutput::text("paid"))
    }
}

/// A journal that, if enabled, suspends the process as soon as a run has received the
/// acknowledgement of an intent.
struct Stops(SqliteJournal, bool);

struct StopsWriter(Arc<dyn JournalWriter>, bool);

#[async_trait]
impl Journal for Stops {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(StopsWriter(self.0.open(session, agent).await?, self.1)))
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
        let stops = self.1 && entries.iter().any(|entry| matches!(entry.body, EntryBody::ToolStarted { .. }));
        let ack = self.0.append(entries);
        Ack::Later(Box::pin(async move {
            let first = ack.await?;
            if stops {
                stop();
            }
            Ok(first)
        }))
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        self.0.verify_lease()
    }
}

fn stop() {
    say("stops");
    raise(Signal::SIGSTOP).expect("stops");
}

fn say(line: &str) {
    writeln!(io::stdout(), "\n{line}").expect("the parent listens");
}

fn journal(dir: &Path) -> SqliteJournal {
    let builder = SqliteJournal::builder(dir.join("agent.db")).lease_ttl(Duration::from_secs(1));
    builder.open().expect("opens")
}

fn agent(journal: impl Journal, pay: Pay, turns: impl IntoIterator<Item = Turn>) -> Agent {
    let agent = Agent::builder("payer", ScriptedModel::new(turns)).tool(pay).store(journal);
    agent.when_busy(WhenBusy::queue()).build().expect("builds")
}

/// Runs until it is suspended, and then to the end. The tests below start it as a separate process.
#[tokio::test]
#[ignore = "is stopped, and waits for the test that goes on with it"]
async fn child() {
    let dir = env::var_os(PLACE).expect("the parent says where");
    let dir = Path::new(&dir);
    let in_call = env::var_os(IN_CALL).is_some();
    let pay = Pay { paid: dir.join("paid"), stops: in_call };
    let turns = [Turn::call("1", "pay", json!({})), Turn::text("done")];
    let agent = agent(Stops(journal(dir), !in_call), pay, turns);
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
    wakes_up_too_late([]).await;
}

#[tokio::test]
async fn a_tool_that_looks_before_its_effect_does_nothing_when_the_session_is_anothers_by_then() {
    wakes_up_too_late([(IN_CALL, "1")]).await;
}

async fn wakes_up_too_late<const N: usize>(settings: [(&str, &str); N]) {
    let dir = tempfile::tempdir().expect("a directory");
    let child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "stopped::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, dir.path())
        .envs(settings)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Process(child.expect("starts"));
    let mut lines = BufReader::new(child.0.stdout.take().expect("is piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "stops"), "it came to its intent");
    // The process renews its lease until it is actually suspended, so the session becomes free one
    // second after that.
    let pay = Pay { paid: dir.path().join("paid"), stops: false };
    let heir = agent(journal(dir.path()), pay, [Turn::text("done")]);
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
