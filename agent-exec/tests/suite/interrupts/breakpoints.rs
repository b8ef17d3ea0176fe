//! Runs that stop at breakpoints for inspection.

use agent_core::{
    Checkpoint, ErrorKind, MemoryJournal, RunRequest, ToolOutput, ToolRequest,
    run::Refusal,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_middleware::Breakpoints;
use serde_json::json;

use crate::common::{FnTool, Log, finished, roles, stopped, tool};

fn noted(name: &'static str, log: &Log) -> FnTool {
    let log = log.clone();
    tool(name, move |_: ToolRequest| {
        log.note(name);
        async move { Ok(ToolOutput::text(name)) }
    })
}

fn script() -> ScriptedModel {
    ScriptedModel::new([Turn::call("1", "f", json!({})), Turn::call("2", "g", json!({})), Turn::text("done")])
}

fn agent(model: &ScriptedModel, log: &Log, breakpoints: Breakpoints) -> Agent {
    let builder = Agent::builder("a", model.clone()).tool(noted("f", log)).tool(noted("g", log));
    builder.middleware(breakpoints).build().expect("builds")
}

fn go_on(checkpoint: &Checkpoint) -> RunRequest {
    let [question] = checkpoint.questions.as_slice() else { panic!("{:?}", checkpoint.questions) };
    assert_eq!(question.kind, "breakpoint");
    RunRequest::resume_with(checkpoint.clone(), [question.answer(true)])
}

#[tokio::test]
async fn before_the_first_model_call_nothing_has_happened_and_the_run_goes_on_as_if_it_had_not_stopped() {
    let (log, model) = (Log::default(), script());
    let build = || agent(&model, &log, Breakpoints::new().before_model(0));
    let (_, checkpoint) = stopped(build().run("go").await);
    assert_eq!((model.calls(), checkpoint.step), (0, 0));
    let visits = json!({"before": "model", "visits": {"model": 0, "tools": 0}});
    assert_eq!(checkpoint.questions[0].payload, visits);
    let end = finished(build().start(go_on(&checkpoint)).await);
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
    assert_eq!((model.calls(), log.seen()), (3, vec!["f".to_owned(), "g".to_owned()]));
}

#[tokio::test]
async fn before_the_second_model_call_the_first_turn_is_complete() {
    let (log, model) = (Log::default(), script());
    let build = || agent(&model, &log, Breakpoints::new().before_model(1));
    let (_, checkpoint) = stopped(build().run("go").await);
    assert_eq!((model.calls(), checkpoint.history.len()), (1, 3));
    finished(build().start(go_on(&checkpoint)).await);
    assert_eq!(model.calls(), 3);
}

#[tokio::test]
async fn before_a_tool_the_call_is_in_the_checkpoint_and_is_run_first_without_another_model_call() {
    let (log, model) = (Log::default(), script());
    let build = || agent(&model, &log, Breakpoints::new().before_tool("g", 1).before_tool("g", 0));
    let (_, checkpoint) = stopped(build().run("go").await);
    assert_eq!((model.calls(), log.seen()), (2, vec!["f".to_owned()]));
    let agent_core::run::checkpoint::Phase::Tools(turn) = &checkpoint.phase else { panic!("{:?}", checkpoint.phase) };
    assert_eq!(turn.open_calls().collect::<Vec<_>>(), ["2"]);
    finished(build().start(go_on(&checkpoint)).await);
    assert_eq!((model.calls(), log.seen().len()), (3, 2));
}

#[tokio::test]
async fn a_place_that_was_passed_does_not_stop_the_run_again_though_a_call_of_the_turn_has_to_wait() {
    let log = Log::default();
    let waits =
        tool("waits", async |req: ToolRequest| req.ask::<String>("name", json!("whose?")).map(ToolOutput::text));
    let calls = [("1", "f", json!({})), ("2", "waits", json!({}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(noted("f", &log)).tool(waits);
    let agent = agent.middleware(Breakpoints::new().before_tools(0)).build().expect("builds");
    let (_, checkpoint) = stopped(agent.run("go").await);
    let (_, checkpoint) = stopped(agent.start(go_on(&checkpoint)).await);
    assert_eq!(checkpoint.questions[0].id, "2/name");
    finished(agent.start(RunRequest::resume_with(checkpoint.clone(), [checkpoint.questions[0].answer("Ada")])).await);
    assert_eq!(log.seen(), ["f"]);
}

#[tokio::test]
async fn one_goes_step_by_step_with_breakpoints_that_come_with_each_request() {
    let (log, model) = (Log::default(), script());
    let agent = agent(&model, &log, Breakpoints::new());
    let first = RunRequest::user("go").resource(Breakpoints::new().before_tools(0));
    let (_, checkpoint) = stopped(agent.start(first).await);
    assert_eq!(model.calls(), 1);
    let (_, checkpoint) = stopped(agent.start(go_on(&checkpoint).resource(Breakpoints::new().before_model(1))).await);
    assert_eq!((model.calls(), log.seen()), (1, vec!["f".to_owned()]));
    finished(agent.start(go_on(&checkpoint)).await);
}

#[tokio::test]
async fn a_crash_after_going_on_does_not_bring_the_breakpoint_back() {
    let (log, model, journal) = (Log::default(), script(), MemoryJournal::default());
    let dies = |turns| {
        let builder = Agent::builder("a", turns).tool(noted("f", &log)).tool(noted("g", &log));
        builder.middleware(Breakpoints::new().before_model(1)).store(journal.clone()).build().expect("builds")
    };
    let (_, checkpoint) = stopped(dies(model.clone()).start(RunRequest::user("go").session("s")).await);
    // The provider is down when the run resumes: the answer was consumed, but the call was not
    // made.
    let none = ScriptedModel::new(Vec::<Turn>::new());
    dies(none).start(go_on(&checkpoint)).await.expect_err("fails");
    finished(dies(model.clone()).start(RunRequest::recover("s", [])).await);
    assert_eq!(model.calls(), 3);
}

#[tokio::test]
async fn a_breakpoint_for_a_tool_that_is_not_there_is_an_error_that_names_those_that_are() {
    let (log, model) = (Log::default(), script());
    let e = agent(&model, &log, Breakpoints::new().before_tool("h", 0)).run("go").await.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().contains("'h'; the tools are: f, g"), "{e}");
}

#[tokio::test]
async fn another_answer_than_true_leaves_the_run_where_it_is() {
    let (log, model) = (Log::default(), script());
    let agent = agent(&model, &log, Breakpoints::new().before_model(0));
    let (_, checkpoint) = stopped(agent.run("go").await);
    let answer = checkpoint.questions[0].answer("next");
    let e = agent.start(RunRequest::resume_with(checkpoint, [answer])).await.expect_err("refused");
    assert!(matches!(Refusal::of(&e), Some(Refusal::Misfit { .. })));
}
