//! Trying model calls again.

mod common;

use std::{sync::Arc, time::Duration};

use agent_core::{Chunk, ErrorKind, EventKind, Message, Model, ModelRequest, ModelResponse, ModelService, Result};
use agent_llm::{OpenAiChat, RetryLayer};
use std::sync::Mutex;
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{Answer, DONE, Provider, Step, ask, ask_to_stream, delta, finish, hello, listen, run, say};

fn stack(provider: &Provider, layer: &RetryLayer) -> ModelService {
    let model = Arc::new(OpenAiChat::builder("m").transport(provider.clone()).build().expect("a model"));
    let service = service_fn(move |req: ModelRequest| {
        let model = model.clone();
        async move { model.call(req).await }
    });
    ModelService::new(layer.layer(ModelService::new(service)))
}

async fn call(provider: &Provider, req: ModelRequest) -> Result<ModelResponse> {
    stack(provider, &RetryLayer::new().jitter(|| 1.0)).oneshot(req).await
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
async fn the_delay_that_the_provider_names_is_kept() {
    let provider = Provider::new([refusal(429).header("retry-after", "7"), Answer::json(200, hello())]);
    let began = Instant::now();
    call(&provider, ask()).await.expect("an answer");
    assert_eq!(began.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_cap_is_not_waited_for() {
    let provider = Provider::new([refusal(429).header("retry-after", "3600")]);
    let began = Instant::now();
    let error = call(&provider, ask()).await.expect_err("too long a wait");
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
    let run = run([Message::user("hi")]);
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = events.clone();
    run.cx().attach(Arc::new(move |event: &agent_core::Event| sink.lock().expect("lock").push(event.kind.clone())));
    let provider =
        Provider::new([refusal(500), refusal(429).header("retry-after-ms", "250"), Answer::json(200, hello())]);
    call(&provider, ModelRequest::new(run.cx().clone())).await.expect("an answer");
    let events = events.lock().expect("lock").clone();
    let [EventKind::Retry { attempt: 2, delay: first, error }, EventKind::Retry { attempt: 3, delay: second, .. }] =
        &events[..]
    else {
        panic!("two announcements, not {events:?}")
    };
    assert_eq!((*first, *second), (1.0, 0.25));
    assert!(error.contains("why") && error.contains("status: 500"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_stock_layer_inside_is_tried_again() {
    let provider = Provider::new([Answer::json(200, hello()), Answer::json(200, hello())]);
    let slow = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let model = Arc::new(OpenAiChat::builder("m").transport(provider.clone()).build().expect("a model"));
    let service = service_fn(move |req: ModelRequest| {
        let (model, slow) = (model.clone(), slow.swap(false, std::sync::atomic::Ordering::Relaxed));
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
