//! A sandbox for each session.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    Error, Resources, Tool, Toolset,
    engine::{RunDriver, RunParts},
    run::RunIds,
};
use agent_tools::{
    PerSession,
    sandbox::{MemorySandbox, Sandbox},
};
use serde_json::json;

use crate::support::{call_in, run};

fn of_session(session: &str) -> RunDriver {
    let any = run(Resources::default());
    let ids = Arc::new(RunIds::root("agent", session));
    RunDriver::new(RunParts::new(ids, any.engine().emitter().clone(), any.engine().log().clone()))
}

/// The sandboxes that were made, each with the session that it was made for.
type Made = Arc<Mutex<Vec<(String, MemorySandbox)>>>;

fn sandboxes() -> (Made, PerSession) {
    let made = Made::default();
    let noted = made.clone();
    let tools = PerSession::new(move |session| {
        let noted = noted.clone();
        async move {
            if &*session == "refused" {
                return Err(Error::config("none for this one"));
            }
            let sandbox = MemorySandbox::new();
            noted.lock().expect("is free").push((session.to_string(), sandbox.clone()));
            Ok(sandbox)
        }
    });
    (made, tools.idle(Duration::from_secs(60)))
}

async fn write(tools: &[Arc<dyn Tool>], run: &RunDriver) {
    let write = tools.iter().find(|tool| tool.spec().name == "write_file").expect("is there");
    call_in(run.cx(), write, json!({"path": "file", "content": "1"})).await.expect("writes");
}

#[tokio::test(start_paused = true)]
async fn each_session_has_a_sandbox_of_its_own_and_its_runs_share_it() {
    let (made, set) = sandboxes();
    let (one, again, other) = (of_session("one"), of_session("one"), of_session("other"));
    let tools = set.tools(one.cx()).await.expect("are there");
    let same = set.tools(again.cx()).await.expect("are there");
    assert!(tools.iter().zip(&same).all(|(a, b)| Arc::ptr_eq(a, b)) && tools.len() == 14);
    write(&tools, &one).await;
    set.tools(other.cx()).await.expect("are there");
    let made = made.lock().expect("is free").clone();
    assert_eq!(made.iter().map(|(session, _)| &**session).collect::<Vec<_>>(), ["one", "other"]);
    assert_eq!(made[0].1.read("file").await.expect("is there"), "1");
    assert!(made[1].1.read("file").await.is_err());
    let refused = set.tools(of_session("refused").cx()).await.err().expect("is refused");
    assert_eq!(refused.message(), "none for this one");
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_is_closed_when_its_session_is_idle_and_never_while_a_run_has_its_tools() {
    let (made, set) = sandboxes();
    let run = of_session("one");
    let count = || made.lock().expect("is free").len();
    let tools = set.tools(run.cx()).await.expect("are there");
    tokio::time::sleep(Duration::from_secs(600)).await;
    drop(set.tools(run.cx()).await);
    assert_eq!(count(), 1, "a call of ten minutes is no idleness");
    drop(tools);
    tokio::time::sleep(Duration::from_secs(200)).await;
    drop(set.tools(run.cx()).await);
    assert_eq!(count(), 2, "it was closed, and is made anew");
    set.close().await.expect("closes");
    drop(set.tools(run.cx()).await);
    assert_eq!(count(), 3);
}
