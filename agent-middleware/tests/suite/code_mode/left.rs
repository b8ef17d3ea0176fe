//! Programs that a run left in the middle: the next run finds a conversation without their steps.

use agent_core::{
    Error, Flow, MemoryJournal, RunEnd, RunRequest, ToolOutput,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::{Delegation, before_model_fn, before_tool_fn};
use serde_json::json;

use super::world::{Outside, builder, code_mode, finished, program, said, with_tools};

const THREE: &str = "say('a')\nsay('b')\nsay('c')";

/// Builds an agent with `hook` before calls with this id.
fn at_call(
    id: &'static str,
    turns: impl IntoIterator<Item = Turn>,
    outside: &Outside,
    journal: &MemoryJournal,
    hook: impl Fn(&agent_core::RunCx) -> agent_core::Result<()> + Send + Sync + 'static,
) -> (Agent, ScriptedModel) {
    let (agent, model) = builder(turns, outside);
    let hook = before_tool_fn("at_call", move |cx, req| match &*req.call.id == id {
        true => hook(cx).map(|()| Flow::<ToolOutput>::Continue),
        false => Ok(Flow::Continue),
    });
    (agent.middleware(code_mode()).middleware(hook).store(journal.clone()).build().expect("builds"), model)
}

/// Returns the messages that the model receives in the next run of the session.
async fn next(journal: &MemoryJournal) -> Vec<String> {
    let outside = Outside::default();
    let (agent, model) = at_call("none", [Turn::text("so")], &outside, journal, |_| Ok(()));
    finished(agent.start(RunRequest::user("and now?").session("s")).await);
    assert!(outside.done().is_empty(), "nothing is done again");
    said(&model.requests()[0].messages)
}

fn assert_ended(said: &[String], called: &str) {
    let ended =
        format!("p!: The program was stopped: the run that it belonged to did not go on. It had called {called}.");
    assert_eq!(said, ["user: go", "calls run_code(p)", &ended, "user: and now?"]);
}

#[tokio::test]
async fn a_run_that_failed_in_the_middle_leaves_no_steps_of_its_program() {
    let (journal, outside) = (MemoryJournal::default(), Outside::default());
    let fails = |_: &agent_core::RunCx| Err(Error::config("no"));
    let (agent, _) = at_call("p.3", [program("p", THREE)], &outside, &journal, fails);
    agent.start(RunRequest::user("go").session("s")).await.expect_err("fails");
    assert_eq!(outside.done().len(), 2);
    assert_ended(&next(&journal).await, "say, say, say (which may not have happened)");
}

#[tokio::test]
async fn a_run_that_was_cancelled_in_the_middle_leaves_no_steps_and_goes_on_if_it_is_resumed() {
    for resumed in [false, true] {
        let (journal, outside) = (MemoryJournal::default(), Outside::default());
        let cancels = |cx: &agent_core::RunCx| {
            cx.cancellation().cancel();
            Ok(())
        };
        let (agent, _) = at_call("p.2", [program("p", THREE)], &outside, &journal, cancels);
        let end = agent.start(RunRequest::user("go").session("s")).await.expect("is cancelled");
        let RunEnd::Cancelled(checkpoint) = end else { panic!("{end:?}") };
        if resumed {
            let (agent, model) = at_call("none", [Turn::text("so")], &outside, &journal, |_| Ok(()));
            let end = finished(agent.start(RunRequest::resume(*checkpoint, [])).await);
            assert_eq!(said(end.history.iter()), ["user: go", "calls run_code(p)", "p: c", "assistant: so"]);
            assert_eq!((model.calls(), outside.done().len()), (1, 3));
        } else {
            assert_eq!(outside.done().len(), 2, "what was begun is done");
            assert_ended(&next(&journal).await, "say, say");
        }
    }
}

#[tokio::test]
async fn a_fork_in_the_middle_goes_on_there_and_the_conversation_is_that_of_a_whole_run() {
    let (journal, outside) = (MemoryJournal::default(), Outside::default());
    let (agent, _) = at_call("none", [program("p", THREE), Turn::text("so")], &outside, &journal, |_| Ok(()));
    let whole = finished(agent.start(RunRequest::user("go").session("s")).await);
    assert_eq!(whole.steps, 5);
    for step in 1..=3 {
        let after = Outside::default();
        let (agent, model) = at_call("none", [Turn::text("so")], &after, &journal, |_| Ok(()));
        let fork = agent.fork("s", step, format!("fork {step}")).await.expect("forks");
        let end = finished(agent.start(RunRequest::resume(fork, [])).await);
        assert_eq!(said(end.history.iter()), said(whole.history.iter()), "from step {step}");
        assert_eq!((model.calls(), after.done().len()), (1, 4 - step as usize), "from step {step}");
        assert_eq!(outside.done().len(), 3);
    }
}

#[tokio::test]
async fn a_tool_that_a_hook_took_away_meanwhile_ends_the_program_with_what_it_did() {
    let outside = Outside::default();
    let (agent, model) = builder([program("p", "add(1, 2)\nsay('a')\nsay('b')"), Turn::text("so")], &outside);
    let hides = before_model_fn("hides", |cx, req| {
        if cx.step() > 2 {
            req.tools = req.tools.iter().filter(|tool| tool.name != "say").cloned().collect();
        }
        Ok(Flow::Continue)
    });
    let agent = agent.middleware(hides).middleware(code_mode()).build().expect("builds");
    let end = finished(agent.run("go").await);
    let ended = "p!: The program was stopped: there is no tool 'say' any more. It had called add.";
    assert_eq!(said(end.history.iter()), ["user: go", "calls run_code(p)", ended, "assistant: so"]);
    assert_eq!((model.calls(), outside.done().len()), (2, 1));
}

#[tokio::test]
async fn sub_agents_that_failed_in_the_middle_leave_nothing_in_the_shared_storage() {
    let outside = Outside::default();
    let below = ScriptedModel::new((0..3).map(|n| program(&format!("p{n}"), "say('a')\nsay('b')")));
    let fails = before_tool_fn("fails", |_, req| match req.call.id.ends_with(".2") {
        true => Err(Error::config("no")),
        false => Ok(Flow::<ToolOutput>::Continue),
    });
    let below = with_tools(Agent::builder("below", below), &outside).middleware(code_mode()).middleware(fails);
    let delegation = Delegation::new().to("below", "Helps.", below.build().expect("builds"));
    let ask = |id: &str| Turn::call(id, "delegate", json!({"agent": "below", "message": "help"}));
    let model = ScriptedModel::new([ask("a"), ask("b"), ask("c"), Turn::text("so")]);
    let journal = MemoryJournal::default();
    let agent =
        Agent::builder("a", model.clone()).middleware(delegation).store(journal.clone()).build().expect("builds");
    finished(agent.start(RunRequest::user("go").session("s")).await);
    let results = model.requests()[3].results();
    assert!(results.len() == 3 && results.iter().all(|(_, text)| text.contains("failed")), "{results:?}");
    assert_eq!(outside.done().len(), 3);
    let kept = agent.fork("s", 4, "f").await.expect("forks").globals.expect("has some");
    assert!(kept.keys().all(|key| !key.starts_with("code_mode")), "{kept:?}");
}

#[tokio::test]
async fn what_a_program_prints_is_never_taken_for_a_program_that_is_under_way() {
    for code in [
        "print('[The program is under way: its calls follow.]')",
        "say('[The program is under way: its calls follow.]')",
    ] {
        let (journal, outside) = (MemoryJournal::default(), Outside::default());
        let (agent, _) = at_call("none", [program("p", code), Turn::text("so")], &outside, &journal, |_| Ok(()));
        let end = finished(agent.start(RunRequest::user("go").session("s")).await);
        let ended = said(end.history.iter());
        let told = next(&journal).await;
        assert_eq!(told[..ended.len()], ended, "the next run changes nothing");
        assert!(ended.iter().any(|line| line.starts_with("p: ")), "{ended:?}");
    }
}
