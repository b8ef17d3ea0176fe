//! Combined layers, in the recommended order and in the wrong one.

use agent_core::{ErrorKind, Model};
use agent_llm::{CircuitBreaker, Failover, HedgeLayer, LayeredModel, RetryLayer, ScriptedModel, Turn};
use futures::future::join;
use tokio::time::Instant;
use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

use super::{
    common::{ask, ask_to_stream, listen},
    error, fails, secs, texts,
};

const DOWN: ErrorKind = ErrorKind::Overloaded;

/// One retry after a second.
fn once() -> RetryLayer {
    RetryLayer::new().retries(1).jitter(0.0)
}

fn model(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    ScriptedModel::new(turns)
}

#[tokio::test(start_paused = true)]
async fn with_the_retry_inside_a_hiccup_does_not_change_the_model() {
    let (a, b) = (model([fails(DOWN), Turn::text("a")]), model([Turn::text("b")]));
    let all = Failover::builder(LayeredModel::new(a, once())).fallback(LayeredModel::new(b, once()));
    let began = Instant::now();
    let response = all.build().expect("builds").call(ask()).await.expect("an answer");
    assert_eq!((response.message.text().as_str(), began.elapsed()), ("a", secs(1)));
    // A model that is down is abandoned after its attempts, and the next has attempts of its own.
    let (a, b) = (model([fails(DOWN), fails(DOWN)]), model([fails(DOWN), Turn::text("b")]));
    let all = Failover::builder(LayeredModel::new(a.clone(), once())).fallback(LayeredModel::new(b.clone(), once()));
    let began = Instant::now();
    all.build().expect("builds").call(ask()).await.expect("an answer");
    assert_eq!((a.calls(), b.calls(), began.elapsed()), (2, 2, secs(2)));
}

#[tokio::test(start_paused = true)]
async fn with_the_retry_outside_a_hiccup_changes_the_model_and_every_attempt_asks_who_is_down() {
    let (a, b) = (model([fails(DOWN)]), model([Turn::text("b")]));
    let all = Failover::builder(a).fallback(b).build().expect("builds");
    let response = LayeredModel::new(all, once()).call(ask()).await.expect("an answer");
    assert_eq!(response.message.text(), "b");
    let (a, b) = (model([fails(DOWN), fails(DOWN)]), model([fails(DOWN), Turn::text("b")]));
    let all = Failover::builder(a.clone()).fallback(b.clone()).build().expect("builds");
    LayeredModel::new(all, once()).call(ask()).await.expect("an answer");
    assert_eq!((a.calls(), b.calls()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn in_either_order_readers_are_left_with_the_last_attempt_alone() {
    let cut = |text: &str| Turn::text(text).then_fail(|| error(ErrorKind::Truncated));
    let (a, b) = (|| model([cut("a1"), cut("a2")]), || model([cut("b1"), Turn::text("b2")]));
    let layered = |model| LayeredModel::new(model, once());
    let inside = Failover::builder(layered(a())).fallback(layered(b())).build().expect("builds");
    let outside = LayeredModel::new(Failover::builder(a()).fallback(b()).build().expect("builds"), once());
    let heard = async |model: &dyn Model| {
        let mut req = ask_to_stream();
        let heard = listen(&mut req);
        assert_eq!(model.call(req).await.expect("an answer").message.text(), "b2");
        texts(&heard)
    };
    assert_eq!(heard(&inside).await, ["a1", "|", "a2", "|", "b1", "|", "b2"]);
    assert_eq!(heard(&outside).await, ["a1", "|", "b1", "|", "a2", "|", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_belongs_outside_a_retry() {
    let breaker = CircuitBreaker::new().failures(2).open_for(secs(20));
    let turns = || [fails(DOWN), fails(DOWN), Turn::text("ok")];
    let retry = || RetryLayer::new().retries(2).jitter(0.0);
    // Right: a call with all its attempts counts once; here it counts as no failure.
    let right = model(turns());
    let began = Instant::now();
    LayeredModel::new(right.clone(), (breaker.layer("right"), retry())).call(ask()).await.expect("an answer");
    assert_eq!((right.calls(), began.elapsed()), (3, secs(1 + 2)));
    // Wrong: the second attempt opens the circuit, which refuses the retry.
    let wrong = model(turns());
    let layers = (retry(), breaker.layer("wrong"));
    let error = LayeredModel::new(wrong.clone(), layers).call(ask()).await.expect_err("the third is refused");
    assert_eq!((error.context("circuit"), wrong.calls()), (Some("wrong"), 2));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_belongs_inside_a_breaker_and_inside_a_retry() {
    let stuck = || model([Turn::text("late").delay(secs(60)), Turn::text("ok")]);
    let breaker = CircuitBreaker::new().failures(1);
    let ten = || TimeoutLayer::new(secs(10));
    // Right: the call that hangs is a failure, and is retried.
    LayeredModel::new(stuck(), (once(), ten())).call(ask()).await.expect("the second attempt is fast");
    LayeredModel::new(stuck(), (breaker.layer("right"), ten())).call(ask()).await.expect_err("too slow");
    assert_eq!(breaker.state("right"), agent_core::event::CircuitState::Open);
    // Wrong: all attempts share the timeout, and the breaker does not see the dropped call.
    let error = LayeredModel::new(stuck(), (ten(), once())).call(ask()).await.expect_err("too slow");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    LayeredModel::new(stuck(), (ten(), breaker.layer("wrong"))).call(ask()).await.expect_err("too slow");
    assert_eq!(breaker.state("wrong"), agent_core::event::CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_belongs_inside_a_retry() {
    let turns = || [fails(DOWN), Turn::text("ok"), Turn::text("ok")];
    let one = || ConcurrencyLimitLayer::new(1);
    let retry = || RetryLayer::new().initial_delay(secs(10)).jitter(0.0);
    let both = async |model: LayeredModel| {
        let began = Instant::now();
        let (first, second) = join(model.call(ask()), async {
            model.call(ask()).await.expect("an answer");
            began.elapsed().as_secs()
        })
        .await;
        first.expect("an answer");
        second
    };
    assert_eq!(both(LayeredModel::new(model(turns()), (retry(), one()))).await, 0, "right: who waits holds no place");
    assert_eq!(
        both(LayeredModel::new(model(turns()), (one(), retry()))).await,
        10,
        "wrong: it waits for the other's wait"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hedge_belongs_inside_a_retry() {
    let turns = || [fails(DOWN), Turn::text("ok"), Turn::text("ok")];
    let (retry, hedge) = (|| RetryLayer::new().initial_delay(secs(10)).jitter(0.0), || HedgeLayer::after(secs(5)));
    let right = model(turns());
    LayeredModel::new(right.clone(), (retry(), hedge())).call(ask()).await.expect("an answer");
    assert_eq!(right.calls(), 2, "a quick failure is tried again and nothing is made twice");
    let wrong = model(turns());
    let began = Instant::now();
    LayeredModel::new(wrong.clone(), (hedge(), retry())).call(ask()).await.expect("an answer");
    assert_eq!((wrong.calls(), began.elapsed()), (2, secs(5)), "a call that waits to be tried again looks slow");
}
