//! Limits of a run.

use crate::common;

use std::time::Duration;

use agent_core::{
    Error, ErrorKind, GlobalStorage, ModelRequest, ModelResponse, ModelService, Result, RunIds, ToolOutput,
    ToolService, Usage, engine::RunDriver, journal::EntryBody, middleware::Middlewares,
};
use agent_middleware::{
    Limits,
    limits::{LimitsConfig, OnLimit, OnToolLimit},
};
use common::{alone, begin, below, call, end, finished, model_stack, restarted, root, run_of, tool_stack};
use futures::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

/// Returns a model that uses 60 tokens per call.
fn model(list: &Middlewares) -> ModelService {
    model_stack(list, |req: ModelRequest| async move {
        let usage = Usage::new(50, 10);
        common::engine(&req.cx).log().record(EntryBody::SideModelFinished { usage: usage.into() });
        Ok(ModelResponse::new("again").with_usage(usage))
    })
}

fn tool(list: &Middlewares) -> ToolService {
    tool_stack(list, |_| async { Ok(ToolOutput::text("ok")) })
}

/// Calls the model until the run is to end; returns the number of calls.
async fn call_until_stopped(run: &RunDriver, model: &ModelService) -> (u32, Result<ModelResponse>) {
    for calls in 0..1000 {
        run.next_step();
        let result = model.clone().oneshot(ModelRequest::new(run.cx().clone())).await;
        if result.is_err() {
            return (calls, result);
        }
    }
    panic!("no limit was reached");
}

proptest! {
    #[test]
    fn a_limit_of_n_model_calls_allows_exactly_n(n in 0u32..20) {
        let list = alone(Limits::new().model_calls(n));
        let run = root(|_| {});
        let (calls, result) = common::block_on(call_until_stopped(&run, &model(&list)));
        prop_assert_eq!(calls, n);
        prop_assert_eq!(result.expect_err("stopped").kind(), ErrorKind::Stopped);
        prop_assert_eq!(run.cx().stop_requested(), Some(format!("limit: at most {n} model calls in one run")));
    }
}

#[tokio::test]
async fn a_limit_that_is_an_error_fails_the_run() {
    let list = alone(Limits::new().model_calls(2).on_model_calls(OnLimit::Error));
    let run = root(|_| {});
    let (calls, result) = call_until_stopped(&run, &model(&list)).await;
    let e = result.expect_err("failed");
    assert_eq!((calls, e.kind(), e.context("middleware")), (2, ErrorKind::Limit, Some("limits")));
    assert_eq!(run.cx().stop_requested(), None);
}

#[tokio::test]
async fn the_model_is_not_called_after_the_tokens_are_used() {
    let list = alone(Limits::new().tokens(100));
    let run = root(|_| {});
    let (calls, _) = call_until_stopped(&run, &model(&list)).await;
    assert_eq!(calls, 2, "60 and 120");
}

#[tokio::test]
async fn tokens_of_the_runs_below_count() {
    let list = alone(Limits::new().tokens(100));
    let run = root(|_| {});
    let child = below(run.cx(), |_| {});
    child.engine().log().record(EntryBody::SideModelFinished { usage: Usage::new(100, 0).into() });
    let (calls, _) = call_until_stopped(&run, &model(&list)).await;
    assert_eq!(calls, 0);
}

#[tokio::test]
async fn of_calls_made_at_once_exactly_as_many_run_as_are_allowed() {
    let list = alone(Limits::new().tool_calls(3));
    let run = root(|_| {});
    let tool = tool(&list);
    let ids: Vec<_> = (0..10).map(|i| i.to_string()).collect();
    let calls = ids.iter().map(|id| tool.clone().oneshot(call(run.cx(), id, "f", json!({}))));
    let outs: Vec<_> = join_all(calls).await.into_iter().map(|out| out.expect("is told")).collect();
    assert_eq!(outs.iter().filter(|out| !out.is_error()).count(), 3);
    assert!(outs[9].to_text().contains("at most 3 tool calls"), "{}", outs[9].to_text());
    assert_eq!(run.cx().stop_requested(), None, "the model may go on");
}

#[tokio::test]
async fn a_tools_own_limit_leaves_the_others_alone() {
    let list = alone(Limits::new().tool("f", 1));
    let run = root(|_| {});
    let outcome = async |id: &str, name: &str| tool(&list).oneshot(call(run.cx(), id, name, json!({}))).await;
    assert!(!outcome("1", "f").await.expect("runs").is_error());
    assert!(outcome("2", "f").await.expect("is told").is_error());
    assert!(!outcome("3", "g").await.expect("runs").is_error());
}

#[tokio::test]
async fn a_tool_limit_may_end_or_fail_the_run() {
    let run = root(|_| {});
    let limits = |then| alone(Limits::new().tool_calls(0).on_tool_calls(then));
    let request = || call(run.cx(), "1", "f", json!({}));
    let e = tool(&limits(OnToolLimit::Error)).oneshot(request()).await.expect_err("fails");
    assert_eq!(e.kind(), ErrorKind::Limit);
    assert!(tool(&limits(OnToolLimit::End)).oneshot(request()).await.expect("is told").is_error());
    assert_eq!(run.cx().stop_requested().as_deref(), Some("limit: at most 0 tool calls in one run"));
}

#[tokio::test]
async fn a_run_that_goes_on_after_a_pause_is_counted_on() {
    let list = alone(Limits::new().tool_calls(2));
    let mut run = root(|_| {});
    let mut ran = 0;
    for step in 0..5 {
        run.next_step();
        let out = tool(&list).oneshot(call(run.cx(), &format!("c{step}"), "f", json!({}))).await.expect("is told");
        ran += u32::from(!out.is_error());
        // Every step ends with a question to a person and is resumed in another process.
        end(&list, run.cx(), Ok(agent_core::RunEnd::Interrupted(Box::new(checkpoint(&run))))).await;
        run = restarted(&run, |_| {});
        let again = tool(&list).oneshot(call(run.cx(), &format!("c{step}"), "f", json!({}))).await.expect("is told");
        assert_eq!(again.is_error(), out.is_error(), "a call that is gone on with is not counted again");
    }
    assert_eq!(ran, 2);
    end(&list, run.cx(), finished(run.cx())).await;
    assert!(run.cx().globals().snapshot().is_empty());
}

fn checkpoint(run: &RunDriver) -> agent_core::Checkpoint {
    agent_core::Checkpoint::new((**run.cx().ids()).clone(), "f")
}

#[tokio::test(start_paused = true)]
async fn a_model_call_is_cut_off_when_the_time_is_up() {
    let list = alone(Limits::new().wall_time(Duration::from_secs(10)));
    let slow = model_stack(&list, |_| async {
        sleep(Duration::from_secs(4)).await;
        Ok(ModelResponse::new("again"))
    });
    let run = root(|_| {});
    begin(&list, run.cx()).await;
    let start = Instant::now();
    let (calls, result) = call_until_stopped(&run, &slow).await;
    assert_eq!((calls, start.elapsed()), (2, Duration::from_secs(10)));
    assert_eq!(result.expect_err("stopped").kind(), ErrorKind::Stopped);
    assert_eq!(run.cx().stop_requested().as_deref(), Some("limit: at most 10s for one run"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_cut_off_and_answered_when_the_time_is_up() {
    let list = alone(Limits::new().wall_time(Duration::from_secs(10)));
    let hung = tool_stack(&list, |_| std::future::pending::<Result<ToolOutput>>());
    let run = root(|_| {});
    begin(&list, run.cx()).await;
    let out = hung.oneshot(call(run.cx(), "1", "f", json!({}))).await.expect("is told");
    assert!(out.is_error() && out.to_text().contains("cut off"));
    assert!(run.cx().stop_requested().is_some());
}

#[tokio::test(start_paused = true)]
async fn time_that_is_up_may_be_an_error_and_every_run_has_its_own() {
    let list = alone(Limits::new().wall_time(Duration::from_secs(10)).on_wall_time(OnLimit::Error));
    let first = root(|_| {});
    begin(&list, first.cx()).await;
    sleep(Duration::from_secs(11)).await;
    let second = root(|_| {});
    begin(&list, second.cx()).await;
    let outcome = async |run: &RunDriver| model(&list).oneshot(ModelRequest::new(run.cx().clone())).await;
    assert_eq!(outcome(&first).await.expect_err("too late").kind(), ErrorKind::Limit);
    outcome(&second).await.expect("in time");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_run_goes_on_after_a_pause_without_the_pause_itself() {
    let list = alone(Limits::new().wall_time(Duration::from_secs(10)).on_wall_time(OnLimit::Error));
    let mut run = root(|_| {});
    for _ in 0..3 {
        begin(&list, run.cx()).await;
        sleep(Duration::from_secs(3)).await;
        model(&list).oneshot(ModelRequest::new(run.cx().clone())).await.expect("in time");
        end(&list, run.cx(), Ok(agent_core::RunEnd::Interrupted(Box::new(checkpoint(&run))))).await;
        sleep(Duration::from_secs(100)).await;
        run = restarted(&run, |_| {});
    }
    begin(&list, run.cx()).await;
    sleep(Duration::from_secs(2)).await;
    let late = model(&list).oneshot(ModelRequest::new(run.cx().clone())).await.expect_err("it took 11 seconds");
    assert_eq!(late.kind(), ErrorKind::Limit);
    end(&list, run.cx(), finished(run.cx())).await;
    assert!(run.cx().globals().snapshot().is_empty());
}

#[test]
fn a_configuration_file_says_seconds_and_misspelt_limits_are_refused() {
    let config: LimitsConfig =
        serde_json::from_str(r#"{"wall_time": 1.5, "tools": {"f": 2}, "on_tool_calls": "end"}"#).expect("parses");
    assert_eq!(config.wall_time, Some(Duration::from_millis(1500)));
    assert_eq!(serde_json::from_value::<LimitsConfig>(json!(config)).expect("parses"), config);
    assert!(serde_json::from_str::<LimitsConfig>(r#"{"model_call": 1}"#).is_err());
}

#[tokio::test]
async fn counts_of_runs_that_nobody_goes_on_with_do_not_pile_up_in_their_session() {
    let (list, globals) = (alone(Limits::new().tool_calls(1)), GlobalStorage::default());
    for _ in 0..500 {
        let run = run_of(RunIds::root("main", "s"), globals.clone(), |_| {});
        tool(&list).oneshot(call(run.cx(), "c1", "f", json!({}))).await.expect("allowed");
        end(&list, run.cx(), Err(Error::new(ErrorKind::Cancelled, "enough"))).await;
        let again = tool(&list).oneshot(call(run.cx(), "c2", "f", json!({}))).await.expect("the model is told");
        assert!(again.is_error(), "the newest count is still there when its run goes on");
    }
    assert_eq!(globals.snapshot().len(), 200);
}
