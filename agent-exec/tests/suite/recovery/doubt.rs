//! New messages for a session whose newest run was cut off during a call.

use agent_core::{
    Effect, ErrorKind, ExitReason, MemoryJournal, RunRequest, ToolOutput, WhenWaiting,
    engine::{NO_RESULT, RESULT_LOST, UNKNOWN_OUTCOME},
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;

use crate::common::{Log, finished, hangs, hooks, ms, results, tool};

/// Lets a run of session `s` die with its process while it waits.
async fn dies(agent: AgentBuilder, journal: &MemoryJournal) {
    let agent = agent.store(journal.clone()).build().expect("builds");
    let run = tokio::spawn(agent.start(RunRequest::user("pay").session("s")));
    tokio::time::sleep(ms(10)).await;
    run.abort();
    assert!(run.await.expect_err("aborted").is_cancelled());
}

fn pays(effect: Effect) -> AgentBuilder {
    let model = ScriptedModel::new([Turn::call("c", "pay", json!({}))]);
    Agent::builder("a", model).tool(hangs("pay", &Log::default()).with(|options| options.effect(effect)))
}

fn says(journal: &MemoryJournal) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::new([Turn::text("hello")]);
    (Agent::builder("a", model.clone()).store(journal.clone()).build().expect("builds"), model)
}

fn hello() -> RunRequest {
    RunRequest::user("hello?").session("s")
}

#[tokio::test(start_paused = true)]
async fn a_new_message_does_not_supersede_a_run_with_a_call_in_doubt_unless_the_request_says_so() {
    let journal = MemoryJournal::default();
    dies(pays(Effect::AtMostOnce), &journal).await;
    let (agent, model) = says(&journal);
    let e = agent.start(hello()).await.expect_err("it is unknown whether the call happened");
    assert_eq!((e.kind(), model.calls()), (ErrorKind::Busy, 0));
    assert_eq!(e.checkpoint().expect("to recover from").in_doubt(), ["c"]);
    assert!(e.message().contains("RunRequest::recover"), "{e}");
    let end = finished(agent.start(hello().when_waiting(WhenWaiting::Supersede)).await);
    assert_eq!(results(&end.history), [("c".to_owned(), UNKNOWN_OUTCOME.to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_be_repeated_holds_nobody_up_and_the_model_does_not_read_that_it_did_not_happen() {
    for (effect, told) in [(Effect::Idempotent, UNKNOWN_OUTCOME), (Effect::Pure, NO_RESULT)] {
        let journal = MemoryJournal::default();
        dies(pays(effect), &journal).await;
        let end = finished(says(&journal).0.start(hello()).await);
        assert_eq!((end.reason, results(&end.history)[0].1.as_str()), (ExitReason::Text, told), "{effect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_with_a_result_that_no_hook_has_passed_is_not_told_as_one_without() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([Turn::calls([("c", "pay", json!({})), ("d", "wait", json!({}))])]);
    let pay = tool("pay", async |_| Ok(ToolOutput::text("paid")));
    let wait = hangs("wait", &Log::default()).repeatable();
    // The result is known, and the call is not answered: the run dies with the other call's.
    let dying = Agent::builder("a", model).tool(pay).tool(wait).middleware(hooks::after_tool(|_, req, _| match &*req
        .call
        .id
    {
        "c" => Err(agent_core::Error::new(ErrorKind::Store, "the hook failed")),
        _ => Ok(()),
    }));
    dies(dying, &journal).await;
    let end = finished(says(&journal).0.start(hello()).await);
    let told = results(&end.history);
    assert_eq!(told[0].1, RESULT_LOST, "a hook may have something to remove from it: {told:?}");
}
