//! Graceful shutdown: a terminated process loses nothing.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use agent_core::{
    ErrorKind, Journal, MemoryJournal, RunRequest, ToolOutput, WhenBusy,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, Drain, shutdown_signal};
use agent_store::SqliteJournal;
use serde_json::json;

use crate::common::{finished, hangs, ms, results, tool};

fn looks(n: usize) -> Vec<Turn> {
    (0..n).map(|i| Turn::call(&format!("c{i}"), "look", json!({}))).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_pause_at_a_boundary_and_those_that_reach_none_are_cancelled_with_their_checkpoint() {
    let drain = Drain::new();
    let start = |hang: bool| {
        let nap = tool("look", async |_| {
            tokio::time::sleep(ms(100)).await;
            Ok(ToolOutput::text("ok"))
        });
        let builder = Agent::builder("a", ScriptedModel::new(looks(50))).drain(&drain);
        let builder = if hang { builder.tool(hangs("look", &Default::default())) } else { builder.tool(nap) };
        tokio::spawn(builder.build().expect("builds").start(RunRequest::user("go")))
    };
    let (pauses, hangs) = (start(false), start(true));
    tokio::time::sleep(ms(250)).await;
    assert_eq!((drain.running(), drain.is_draining()), (2, false));
    let drained = drain.drain(Duration::from_secs(5)).await;
    assert_eq!((drained.ended, drained.cancelled, drained.left), (1, 1, 0));
    assert_eq!(pauses.await.expect("no panic").expect("no failure").as_str(), "paused");
    let cancelled = hangs.await.expect("no panic").expect("no failure");
    assert!(cancelled.as_str() == "cancelled" && cancelled.checkpoint().is_some());
    let late = Agent::builder("a", ScriptedModel::new([])).drain(&drain).build().expect("builds");
    assert_eq!(late.run("go").await.expect_err("too late").kind(), ErrorKind::Busy);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_its_session_does_not_begin_when_a_drain_sets_it_free() {
    let (drain, journal) = (Drain::new(), Arc::new(MemoryJournal::default()));
    let nap = tool("look", async |_| {
        tokio::time::sleep(ms(100)).await;
        Ok(ToolOutput::text("ok"))
    });
    let agent = Agent::builder("a", ScriptedModel::new(looks(50))).tool(nap).store(journal.clone()).drain(&drain);
    let agent = agent.build().expect("builds");
    let start = |id: &str| RunRequest::user("go").session("s").run_id(id).when_busy(WhenBusy::queue());
    let first = tokio::spawn(agent.start(start("first")));
    tokio::time::sleep(ms(150)).await;
    let second = tokio::spawn(agent.start(start("second")));
    tokio::time::sleep(ms(10)).await;
    assert_eq!(drain.drain(Duration::from_secs(5)).await.ended, 2);
    assert_eq!(first.await.expect("no panic").expect("no failure").as_str(), "paused");
    assert_eq!(second.await.expect("no panic").expect_err("it did not begin").kind(), ErrorKind::Busy);
    let open = journal.index("s").await.expect("reads").look(|index| index.unfinished("a").map(|open| open.ids.run_id));
    assert_eq!(open.as_deref(), Some("first"), "it is the one that the next process goes on with");
}

const STORE: &str = "DRAIN_TEST_STORE";

/// Not a test by itself: the application that is terminated.
#[tokio::test]
async fn an_application_with_a_long_run() {
    let Ok(path) = std::env::var(STORE) else { return };
    let drain = Drain::new();
    let nap = tool("look", async |req| {
        println!("step {}", req.cx.step());
        tokio::time::sleep(ms(20)).await;
        Ok(ToolOutput::text("ok"))
    });
    let journal = SqliteJournal::open(path).expect("opens");
    let agent =
        Agent::builder("a", ScriptedModel::new(looks(10_000))).tool(nap).store(journal).drain(&drain).max_steps(20_000);
    let run = tokio::spawn(agent.build().expect("builds").start(RunRequest::user("go").session("s")));
    let signal = shutdown_signal().await.expect("listens");
    let drained = drain.drain(Duration::from_secs(5)).await;
    let end = run.await.expect("no panic").expect("no failure");
    println!("{signal} {} {}", end.as_str(), drained.ended);
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_gets_sigterm_or_sigint_gives_its_session_back_with_every_finished_step() {
    for signal in ["TERM", "INT"] {
        stopped_by(signal).await;
    }
}

#[cfg(unix)]
async fn stopped_by(signal: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("agent.db");
    let test = std::env::current_exe().expect("this program");
    let mut child = Command::new(test)
        .args(["--exact", "limits::drain::an_application_with_a_long_run", "--nocapture"])
        .env(STORE, &path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("step 5")), "it runs");
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("kill");
    let rest: Vec<_> = lines.collect();
    assert!(sent.success() && child.wait().expect("ends").success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.ends_with(&format!("SIG{signal} paused 1"))), "{rest:?}");

    // At once: the lease was released and did not have to expire.
    let model = ScriptedModel::new([Turn::text("done")]);
    let look = tool("look", async |_| Ok(ToolOutput::text("ok")));
    let journal = SqliteJournal::open(&path).expect("opens");
    let agent = Agent::builder("a", model).tool(look).store(journal).max_steps(20_000).build().expect("builds");
    let end = finished(agent.start(RunRequest::recover("s", [])).await);
    let results = results(&end.history);
    assert!(end.answer == "done" && results.len() >= 5 && results.iter().all(|(.., failed)| !failed));
}
