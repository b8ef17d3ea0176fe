//! Retries of model calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Chunk, ErrorKind, EventKind, Model, ModelRequest, ModelResponse, ModelService, Result, Retry as Again,
};
use agent_llm::{LayeredModel, RetryLayer, ScriptedModel, Turn, retry::Backoff};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, retry::budget::TpsBudget, service_fn};

use super::{
    common::{Answer, DONE, Provider, Step, ask, ask_to_stream, delta, finish, hello, listen, say},
    error, fails, observed, secs,
};

fn openai(provider: &Provider) -> LayeredModel {
    agent_llm::model("openai:m").transport(provider.clone()).retries(0).build().expect("a model")
}

async fn call(provider: &Provider, req: ModelRequest) -> Result<ModelResponse> {
    LayeredModel::new(openai(provider), RetryLayer::new().jitter(0.0)).call(req).await
}

fn refusal(status: u16) -> Answer {
    Answer::json(status, r#"{"error":{"message":"why"}}"#)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_twice_is_asked_three_times() {
    let provider = Provider::new([refusal(500), refusal(500), Answer::json(200, hello())]);
    let began = Instant::now();
    let response = call(&provider, ask()).await.expect("an answer");
    assert_eq!((response.message.text().as_str(), provider.calls()), ("hello", 3));
    assert_eq!(began.elapsed().as_secs(), 1 + 2, "the delay doubles");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_asked_once() {
    for (status, kind) in [(400, ErrorKind::InvalidRequest), (401, ErrorKind::Authentication)] {
        let provider = Provider::new([refusal(status)]);
        let error = call(&provider, ask()).await.expect_err("refused");
        assert_eq!((error.kind(), provider.calls()), (kind, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_returned_when_the_attempts_are_used_up() {
    let provider = Provider::new(vec![refusal(503); 5]);
    let error = call(&provider, ask()).await.expect_err("always overloaded");
    assert_eq!((error.kind(), provider.calls()), (ErrorKind::Overloaded, 5));
}

#[tokio::test(start_paused = true)]
async fn the_delay_that_the_provider_names_is_kept_and_spread_a_little() {
    for (jitter, waited) in [(0.0, 7_000..=7_000), (0.5, 7_000..=7_500)] {
        let provider = Provider::new([refusal(429).header("retry-after", "7"), Answer::json(200, hello())]);
        let model = LayeredModel::new(openai(&provider), RetryLayer::new().jitter(jitter));
        let began = Instant::now();
        model.call(ask()).await.expect("an answer");
        assert!(waited.contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_cap_is_not_waited_for() {
    let provider = Provider::new([refusal(429).header("retry-after", "3600")]);
    let began = Instant::now();
    let error = call(&provider, ask()).await.expect_err("too long a wait");
    assert!(error.message().contains("it asks for a wait of 3600s, and at most 30s are waited"), "{error}");
    assert_eq!((error.kind(), began.elapsed().as_secs()), (ErrorKind::RateLimited, 0));
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_run_ends_the_wait_at_once() {
    let provider = Provider::new([refusal(429).header("retry-after", "20")]);
    let req = ask();
    let (cx, began) = (req.cx.clone(), Instant::now());
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cx.cancellation().cancel();
    };
    let (result, ()) = tokio::join!(call(&provider, req), cancel);
    assert_eq!(result.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!((began.elapsed().as_secs(), provider.calls()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_is_not_tried_again() {
    let provider = Provider::new([refusal(500)]);
    let req = ask();
    req.cx.cancellation().cancel();
    assert_eq!(call(&provider, req).await.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!(provider.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_attempt_after_a_partial_stream_begins_with_a_restart() {
    let cut = Answer::stream([say(delta(r#"{"content":"hel"}"#)), Step::Break]);
    let text = Answer::stream([say(delta(r#"{"content":"hello"}"#) + &finish("stop") + DONE)]);
    let provider = Provider::new([refusal(500), cut, text]);
    let mut req = ask_to_stream();
    let heard = listen(&mut req);
    let response = call(&provider, req).await.expect("an answer");
    assert_eq!(response.message.text(), "hello");
    let text = |delta: &str| Chunk::Text { index: 0, delta: delta.into() };
    let heard = heard.lock().expect("lock").clone();
    assert_eq!(heard, [text("hel"), Chunk::Restart, text("hello"), Chunk::End { index: 0 }], "none after the 500");
}

#[tokio::test(start_paused = true)]
async fn every_new_attempt_is_announced() {
    let (_run, req, reports) = observed();
    let provider =
        Provider::new([refusal(500), refusal(429).header("retry-after-ms", "250"), Answer::json(200, hello())]);
    call(&provider, req).await.expect("an answer");
    let events = reports.seen();
    let [
        EventKind::Retry { attempt: 2, delay: first, kind: ErrorKind::Provider, error },
        EventKind::Retry { attempt: 3, delay: second, kind: ErrorKind::RateLimited, .. },
    ] = &events[..]
    else {
        panic!("two announcements, not {events:?}")
    };
    assert_eq!((*first, *second), (1.0, 0.25), "what was asked for");
    assert!(error.contains("why") && error.contains("status: 500"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_stock_layer_inside_is_tried_again() {
    let provider = Provider::new([Answer::json(200, hello()), Answer::json(200, hello())]);
    let slow = Arc::new(AtomicBool::new(true));
    let model = Arc::new(openai(&provider));
    let service = service_fn(move |req: ModelRequest| {
        let (model, slow) = (model.clone(), slow.swap(false, Ordering::Relaxed));
        async move {
            let response = model.call(req).await;
            if slow {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            response
        }
    });
    let timed = tower::timeout::TimeoutLayer::new(Duration::from_secs(10)).layer(ModelService::new(service));
    let service = ModelService::new(RetryLayer::new().layer(timed));
    service.oneshot(ask()).await.expect("the second attempt is fast");
    assert_eq!(provider.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_error_can_have_a_way_of_its_own() {
    let patient = Backoff::new().retries(6).initial_delay(secs(10)).jitter(0.0);
    let layer = RetryLayer::new()
        .retries(1)
        .jitter(0.0)
        .on([ErrorKind::RateLimited, ErrorKind::Unexpected], patient)
        .never([ErrorKind::Timeout]);
    let calls = async |turns: Vec<Turn>| {
        let model = ScriptedModel::new(turns);
        let began = Instant::now();
        let result = LayeredModel::new(model.clone(), layer.clone()).call(ask()).await;
        (result.map_err(|e| e.kind()).map(|r| r.message.text()), model.calls(), began.elapsed().as_secs())
    };
    let limited = || fails(ErrorKind::RateLimited);
    assert_eq!(calls(vec![limited(), limited(), Turn::text("ok")]).await, (Ok("ok".into()), 3, 10 + 20));
    assert_eq!(calls(vec![fails(ErrorKind::Timeout), Turn::text("ok")]).await, (Err(ErrorKind::Timeout), 1, 0));
    let unknown = Turn::error(|| error(ErrorKind::Unexpected).with_retry(Again::Unknown));
    assert_eq!(calls(vec![unknown, Turn::text("ok")]).await, (Ok("ok".into()), 2, 10));
    // All failed attempts count, and the kind of the last one determines the maximum.
    let mixed = vec![limited(), limited(), fails(ErrorKind::Overloaded), Turn::text("ok")];
    assert_eq!(calls(mixed).await, (Err(ErrorKind::Overloaded), 3, 10 + 20));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_ends_all_new_attempts_until_answers_fill_it_again() {
    // One retry per ten answers, without a reserve.
    let layer = RetryLayer::new().budget(TpsBudget::new(secs(60), 0, 0.1)).jitter(0.0);
    let answers = (0..10).map(|_| Turn::text("ok"));
    let turns = [fails(ErrorKind::Overloaded)].into_iter().chain(answers);
    let model = ScriptedModel::new(turns.chain([fails(ErrorKind::Overloaded), Turn::text("ok")]));
    let retried = LayeredModel::new(model.clone(), layer);
    assert_eq!(retried.call(ask()).await.expect_err("no allowance").kind(), ErrorKind::Overloaded);
    for _ in 0..10 {
        retried.call(ask()).await.expect("an answer");
    }
    retried.call(ask()).await.expect("the second attempt's answer");
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_inside_has_taken_back_is_not_taken_back_again() {
    let cut = || Turn::text("half").then_fail(|| error(ErrorKind::Truncated));
    let turns = [cut(), fails(ErrorKind::Overloaded), fails(ErrorKind::Overloaded), Turn::text("whole")];
    let once = || RetryLayer::new().retries(1);
    let model = LayeredModel::new(ScriptedModel::new(turns), (once(), once()));
    let mut req = ask();
    let heard = listen(&mut req);
    model.call(req).await.expect("an answer");
    assert_eq!(super::texts(&heard), ["half", "|", "whole"]);
}

#[tokio::test(start_paused = true)]
async fn the_retries_of_a_model_and_of_a_layer_around_it_do_not_multiply() {
    let asked = async |retries: u32| {
        let provider = Provider::new((0..20).map(|_| refusal(500)));
        let model = agent_llm::model("openai:m").transport(provider.clone()).build().expect("a model");
        let error =
            LayeredModel::new(model, RetryLayer::new().retries(retries)).call(ask()).await.expect_err("refused");
        assert_eq!(error.context("status"), Some("500"));
        provider.calls()
    };
    assert_eq!((asked(0).await, asked(2).await, asked(4).await), (3, 3, 6));
}
