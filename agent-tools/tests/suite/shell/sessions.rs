//! One sandbox per session.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agent_core::{
    Error, Resources, Result, Tool, ToolOutput, ToolRequest, Toolset,
    engine::{RunDriver, RunParts},
    run::RunIds,
};
use agent_tools::{
    PerSession, ToolSet, from_schema,
    sandbox::{MemorySandbox, Sandbox},
};
use serde_json::{Value, json};

use super::support::{call_in, run};

fn of_session(session: &str) -> RunDriver {
    let any = run(Resources::default());
    let ids = Arc::new(RunIds::root("agent", session));
    RunDriver::new(RunParts::new(ids, any.engine().emitter().clone(), any.engine().log().clone()))
}

/// Created sandboxes, each with the session that it belongs to.
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

async fn write(tools: &[Arc<dyn Tool>], run: &RunDriver) -> Result<ToolOutput> {
    let write = tools.iter().find(|tool| tool.spec().name == "write_file").expect("is there");
    call_in(run.cx(), write, json!({"path": "file", "content": "1"})).await
}

#[tokio::test(start_paused = true)]
async fn each_session_has_a_sandbox_of_its_own_and_its_runs_share_it() {
    let (made, set) = sandboxes();
    let (one, again, other) = (of_session("one"), of_session("one"), of_session("other"));
    let tools = set.tools(one.cx()).await.expect("are there");
    let same = set.tools(other.cx()).await.expect("are there");
    assert!(tools.iter().zip(&same).all(|(a, b)| Arc::ptr_eq(a, b)) && tools.len() == 14, "they are composed once");
    for run in [&one, &again, &other] {
        write(&tools, run).await.expect("writes");
    }
    let made = made.lock().expect("is free").clone();
    assert_eq!(made.iter().map(|(session, _)| &**session).collect::<Vec<_>>(), ["one", "other"]);
    assert_eq!(made[0].1.read("file").await.expect("is there"), "1");
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_is_made_at_the_first_call_and_one_that_cannot_be_made_fails_that_call_alone() {
    let (made, set) = sandboxes();
    let (one, refused) = (of_session("one"), of_session("refused"));
    let tools = set.tools(refused.cx()).await.expect("nothing is needed to offer them");
    assert!(made.lock().expect("is free").is_empty(), "nothing was called");
    assert_eq!(write(&tools, &refused).await.expect_err("is refused").message(), "none for this one");
    write(&tools, &one).await.expect("the others have theirs");
}

/// Returns a tool over a sandbox whose calls take this long.
fn slow(longest: Duration) -> ToolSet {
    ToolSet::new("slow").tool(from_schema(
        "slow",
        "",
        json!({"type": "object"}),
        move |_: Value, _: ToolRequest| async move {
            tokio::time::sleep(longest).await;
            "done"
        },
    ))
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_is_closed_when_its_session_is_idle_and_never_under_a_call() {
    let (made, set) = sandboxes();
    let set = set.offering(|_| Ok(slow(Duration::from_secs(600))));
    let run = of_session("one");
    let count = || made.lock().expect("is free").len();
    let tools = set.tools(run.cx()).await.expect("are there");
    let call = async || call_in(run.cx(), &tools[0], json!({})).await.expect("is done");
    call().await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    set.tools(run.cx()).await.expect("the run takes a step");
    tokio::time::sleep(Duration::from_secs(59)).await;
    call().await;
    assert_eq!(count(), 1, "a call of ten minutes is no idleness");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(format!("{set:?}").contains("open: 0"), "{set:?}");
    call().await;
    assert_eq!(count(), 2, "it was closed, and is made anew, though the run has the tools all the time");
    set.close().await.expect("closes");
    call().await;
    assert_eq!(count(), 3);
}
