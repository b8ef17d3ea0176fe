//! Servers that crash, hang and send invalid data.

use std::{sync::Arc, time::Duration};

use agent_core::{ErrorKind, ExitReason, Tool, Toolset, engine::RunParts, run::RunDeadline};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{double::Double, support::*, wild};

/// Every method that a client of these tests calls.
const METHODS: [&str; 3] = ["initialize", "tools/list", "tools/call"];

/// Returns true for the tool that connects a server whose tools are missing.
fn is_stand_in(tool: &dyn Tool) -> bool {
    tool.spec().name == "connect_wild"
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_at_any_method_costs_an_error_and_never_the_run() {
    for method in METHODS {
        let client = wild::builder(&format!("hang {method}")).timeout(Duration::from_secs(5)).build().expect("builds");
        let run = run(|_| {});
        let tools = client.tools(run.cx()).await.expect("a run goes on");
        assert_eq!(tools.iter().all(|tool| is_stand_in(&**tool)), method != "tools/call", "{method}");
        for tool in tools {
            let error = tool.call(request(run.cx(), &*tool, json!({}))).await.expect_err("hangs");
            assert_eq!(error.kind(), ErrorKind::Tool);
            let says_why = is_stand_in(&*tool) || error.message().contains("did not answer within 5 seconds");
            assert!(says_why, "{error}");
        }
        let closed = tokio::time::timeout(Duration::from_secs(30), client.close()).await;
        closed.expect("closing does not hang").expect("closes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_resources_and_prompts_ends_with_its_timeout_too() {
    for method in
        ["resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "ping"]
    {
        let client = wild::builder(&format!("hang {method}")).timeout(Duration::from_secs(5)).build().expect("builds");
        let error = match method {
            "resources/list" => client.resources().await.map(drop),
            "resources/templates/list" => client.resource_templates().await.map(drop),
            "resources/read" => client.read_resource("a:b").await.map(drop),
            "prompts/list" => client.prompts().await.map(drop),
            "prompts/get" => client.prompt("a", []).await.map(drop),
            _ => {
                assert!(!client.is_healthy().await);
                continue;
            }
        };
        let error = error.expect_err(method);
        assert_eq!(error.kind(), ErrorKind::Tool, "{method}: {error}");
        assert!(error.message().contains("did not answer within 5 seconds"), "{method}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_at_any_method_costs_an_error_and_is_tried_again() {
    for method in METHODS {
        let client = wild::builder(&format!("die {method}")).build().expect("builds");
        let run = run(|_| {});
        for _ in 0..3 {
            for tool in client.tools(run.cx()).await.expect("a run goes on") {
                let error = tool.call(request(run.cx(), &*tool, json!({}))).await.expect_err("dies");
                assert_eq!(error.kind(), ErrorKind::Tool);
                assert!(is_stand_in(&*tool) || error.message().contains("went away"), "{error}");
            }
            tokio::time::sleep(Duration::from_secs(120)).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_was_killed_in_the_middle_of_a_call_costs_that_call_and_is_there_for_the_next() {
    let double = Double::new();
    let client = double.client();
    let slow = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "double_slow", json!({})).await }
    });
    until(|| double.count("slow") == 1).await;
    double.kill();
    let error = slow.await.expect("no panic").expect_err("killed");
    assert_eq!(error.kind(), ErrorKind::Tool);
    assert!(error.message().contains("Whether it did what was asked is not known"), "{error}");
    assert_eq!(call(&client, "double_echo", json!({"text": "back"})).await.expect("back").to_text(), "back");
}

#[tokio::test(start_paused = true)]
async fn garbage_between_messages_is_left_out() {
    let client = wild::builder("garbage").build().expect("builds");
    assert_eq!(call(&client, "wild_work", json!({})).await.expect("works").to_text(), "worked");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_none_is_an_error_of_its_call() {
    let client = wild::builder("nonsense").build().expect("builds");
    let error = call(&client, "wild_work", json!({})).await.expect_err("nonsense");
    assert_eq!(error.kind(), ErrorKind::Tool);
    assert!(!error.message().contains("did not answer"), "at once: {error}");
}

#[tokio::test]
async fn ten_megabytes_are_an_error_by_default() {
    let client = wild::builder("large 10000000").build().expect("builds");
    let error = call(&client, "wild_work", json!({})).await.expect_err("too large");
    assert!(error.message().contains("the limit is 1048576"), "{error}");
    let patient = wild::builder("large 10000000").max_result(11_000_000).build().expect("builds");
    assert_eq!(call(&patient, "wild_work", json!({})).await.expect("fits").to_text().len(), 10_000_000);
}

#[tokio::test]
async fn the_server_is_told_of_a_call_that_is_given_up() {
    let double = Double::new();
    let client = double.builder().timeout_of("slow", Duration::from_millis(100)).build().expect("builds");
    let error = call(&client, "double_slow", json!({})).await.expect_err("slow");
    assert!(error.message().contains("did not answer within 0."), "{error}");
    until(|| double.count("slow was cancelled") == 1).await;

    let cancel = CancellationToken::new();
    let stopped = run(|parts: &mut RunParts| parts.cancel = cancel.clone());
    let called = async { call_in(stopped.cx(), &double.client(), "double_slow", json!({})).await };
    let cancelled = async {
        until(|| double.count("slow") == 2).await;
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(called, cancelled);
    assert_eq!(called.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    until(|| double.count("slow was cancelled") == 2).await;

    let tool = tool(&client, "double_slow").await;
    let run = run(|_| {});
    tokio::select! {
        called = tool.call(request(run.cx(), &*tool, json!({}))) => panic!("{called:?}"),
        () = until(|| double.count("slow") == 3) => {} // the call is dropped
    }
    until(|| double.count("slow was cancelled") == 3).await;
}

#[tokio::test(start_paused = true)]
async fn no_call_takes_longer_than_its_run_may() {
    let deadline = RunDeadline::new(Duration::from_secs(3), Duration::ZERO, ExitReason::Deadline).expect("in reach");
    let run = run(|parts: &mut RunParts| parts.deadline = Some(deadline));
    let client = wild::builder("hang tools/call").build().expect("builds");
    let error = call_in(run.cx(), &client, "wild_work", json!({})).await.expect_err("hangs");
    assert!(error.message().contains("did not answer within"), "{error}");
    assert!(run.cx().deadline().expect("set").left() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_a_moment_for_a_server_that_is_left_alone() {
    let double = Double::new();
    let client = double.client();
    let echo = tool(&client, "double_echo").await;
    double.set_away(true);
    double.kill();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let run = run(|_| {});
    let error = echo.call(request(run.cx(), &*echo, json!({"text": "a"}))).await.expect_err("away");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Tool, true));
    double.set_away(false);
    let echo: Arc<dyn agent_core::Tool> = echo;
    assert_eq!(echo.call(request(run.cx(), &*echo, json!({"text": "a"}))).await.expect("back").to_text(), "a");
}
