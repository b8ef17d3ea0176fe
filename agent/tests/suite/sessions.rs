//! Sandboxes of sessions, under a whole agent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent::{
    prelude::*,
    testing::{ScriptedModel, Turn},
    tools::{PerSession, Skill, Skills, sandbox::MemorySandbox},
};
use serde_json::json;

/// Sandboxes that cannot be made if `fails`, and how many were asked for.
fn sandboxes(fails: bool) -> (Arc<AtomicUsize>, PerSession) {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let tools = PerSession::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { if fails { Err(Error::tool("no machine is free")) } else { Ok(MemorySandbox::new()) } }
    });
    (made, tools.idle(Duration::from_secs(60)))
}

async fn run(agent: &Agent) -> String {
    match agent.start(RunRequest::user("go").session("s")).await.expect("runs") {
        RunEnd::Finished(end) => end.answer,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_idle_has_given_its_sandbox_back_and_its_next_run_has_a_new_one() {
    let (made, tools) = sandboxes(false);
    let write = || Turn::call("c", "write_file", json!({"path": "a", "content": "1"}));
    let turns = (0..3).flat_map(|_| [write(), Turn::text("Done.")]);
    let agent = Agent::builder("a", ScriptedModel::new(turns)).toolset(tools).build().expect("builds");
    run(&agent).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    run(&agent).await;
    assert_eq!(made.load(Ordering::Relaxed), 1, "it is the same one for a while");
    tokio::time::sleep(Duration::from_secs(200)).await;
    run(&agent).await;
    assert_eq!(made.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_chat_and_a_skill_need_no_sandbox() {
    let (made, tools) = sandboxes(true);
    let skills = Skills::new().skill(Skill::new("greeting", "How guests are greeted.", "Say hello.")).expect("is new");
    let model = ScriptedModel::new([
        Turn::text("Hello."),
        Turn::call("c", "load_skill", json!({"name": "greeting"})),
        Turn::text("Loaded."),
        Turn::call("c", "list_files", json!({})),
        Turn::text("There is no machine."),
    ]);
    let agent = Agent::builder("a", model.clone()).toolset(tools).tools(skills.tools()).build().expect("builds");
    assert_eq!(run(&agent).await, "Hello.");
    assert_eq!(run(&agent).await, "Loaded.");
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert_eq!(run(&agent).await, "There is no machine.", "the call has failed, and not the run");
    assert_eq!(made.load(Ordering::Relaxed), 1);
    let told = model.requests().last().expect("asked").results();
    assert!(told.last().expect("a result").1.contains("no machine is free"), "{told:?}");
}
