//! Hedging of slow calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{Chunk, ErrorKind, EventKind, Model, ModelInfo, ModelRequest, ModelResponse, Result, async_trait};
use agent_llm::{Body, HedgeLayer, LayeredModel, ScriptedModel, Turn, transport_fn};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Response;
use tokio::time::Instant;

use super::{
    common::{DONE, ask, ask_to_stream, delta, finish, listen},
    error, fails, observed, secs, texts,
};

/// A turn whose chunks are this many seconds apart.
fn slow(text: &str, seconds: u64) -> Turn {
    Turn::text(text).delay(secs(seconds))
}

fn hedged(turns: impl IntoIterator<Item = Turn>) -> (ScriptedModel, LayeredModel) {
    let model = ScriptedModel::new(turns);
    (model.clone(), LayeredModel::new(model, HedgeLayer::after(secs(5))))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_answers_in_time_is_made_once() {
    let (model, hedged) = hedged([slow("fast", 2)]);
    hedged.call(ask()).await.expect("an answer");
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_is_made_again_and_the_faster_answer_wins() {
    // Each emits a word and the end of the block: the first at 20 s and 40 s, the second at 5 + 3 s
    // and 5 + 6 s.
    let (model, hedged) = hedged([slow("first", 20), slow("second", 3)]);
    let (_run, req, reports) = observed();
    let began = Instant::now();
    let response = hedged.call(req).await.expect("an answer");
    assert_eq!((response.message.text().as_str(), began.elapsed()), ("second", secs(11)));
    assert_eq!((model.calls(), model.open()), (2, 0), "the loser was dropped");
    assert_eq!(response.usage.calls, 1, "the usage is the winner's alone");
    assert_eq!(reports.seen(), [EventKind::Hedge { delay: 5.0 }]);
}

#[tokio::test(start_paused = true)]
async fn the_first_call_can_still_win() {
    let (model, hedged) = hedged([slow("first", 4), slow("second", 20)]);
    let began = Instant::now();
    assert_eq!(hedged.call(ask()).await.expect("an answer").message.text(), "first");
    assert_eq!((model.calls(), began.elapsed()), (2, secs(8)));
}

#[tokio::test(start_paused = true)]
async fn who_has_spoken_is_not_slow_however_long_the_answer_is() {
    let (model, hedged) = hedged([slow("a b c d e f g", 4)]);
    let (_run, mut req, reports) = observed();
    let heard = listen(&mut req);
    hedged.call(req).await.expect("an answer");
    assert_eq!((texts(&heard).len(), model.calls(), reports.seen()), (7, 1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn only_the_chunks_of_the_call_that_speaks_first_are_heard() {
    // The first would emit at 10 s and complete at 20 s, the second emits at 5 + 4 s and completes
    // at 5 + 16 s.
    let (model, hedged) = hedged([slow("late", 10), slow("soon but long", 4)]);
    let mut req = ask_to_stream();
    let heard = listen(&mut req);
    let (response, ()) = tokio::join!(hedged.call(req), async {
        tokio::time::sleep(secs(8)).await;
        assert_eq!(model.open(), 2);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(model.open(), 1, "the loser is dropped as soon as the winner has spoken");
    });
    assert_eq!(response.expect("an answer").message.text(), "soon but long");
    assert_eq!(texts(&heard), ["soon ", "but ", "long"]);
}

/// Emits chunks from a separate task, which outlives the call.
struct Stray(AtomicUsize);

#[async_trait]
impl Model for Stray {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("stray")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            tokio::spawn(async move {
                tokio::time::sleep(secs(10)).await;
                req.sink.push(Chunk::Text { index: 0, delta: "stray".into() })
            });
            return std::future::pending().await;
        }
        ScriptedModel::new([slow("one two three", 3)]).call(req).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_loser_that_speaks_though_its_call_was_dropped_is_not_heard() {
    let hedged = LayeredModel::new(Stray(AtomicUsize::new(0)), HedgeLayer::after(secs(5)));
    let mut req = ask_to_stream();
    let heard = listen(&mut req);
    hedged.call(req).await.expect("an answer");
    assert_eq!(texts(&heard), ["one ", "two ", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_in_silence_leaves_it_to_the_other() {
    for turns in [
        [fails(ErrorKind::Provider).delay(secs(7)), slow("ok", 10)],
        [slow("ok", 10), fails(ErrorKind::RateLimited).delay(secs(2))],
    ] {
        let (model, hedged) = hedged(turns);
        assert_eq!(hedged.call(ask()).await.expect("an answer").message.text(), "ok");
        assert_eq!(model.calls(), 2);
    }
    let (_, hedged) = hedged([fails(ErrorKind::Provider).delay(secs(20)), fails(ErrorKind::RateLimited)]);
    assert_eq!(hedged.call(ask()).await.expect_err("both failed").kind(), ErrorKind::Provider, "the later error");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_before_it_is_slow_is_not_made_again() {
    let (model, hedged) = hedged([fails(ErrorKind::Provider).delay(secs(1))]);
    assert_eq!(hedged.call(ask()).await.expect_err("failed").kind(), ErrorKind::Provider);
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_winner_that_breaks_off_is_an_error_and_not_glued_to_the_loser() {
    let cut = Turn::text("half").delay(secs(1)).then_fail(|| error(ErrorKind::Truncated));
    let (model, hedged) = hedged([slow("whole", 20), cut]);
    let mut req = ask_to_stream();
    let heard = listen(&mut req);
    assert_eq!(hedged.call(req).await.expect_err("cut").kind(), ErrorKind::Truncated);
    assert_eq!((texts(&heard), model.open()), (vec!["half".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_slow_can_be_learned() {
    let quick = (0..20).map(|_| slow("ok", 1));
    let model = ScriptedModel::new(quick.chain([slow("too slow", 30), slow("ok", 1)]));
    let hedged = LayeredModel::new(model.clone(), HedgeLayer::at_percentile(0.9));
    for _ in 0..20 {
        hedged.call(ask()).await.expect("an answer");
    }
    assert_eq!(model.calls(), 20, "while it learns, no call is made twice");
    let began = Instant::now();
    hedged.call(ask()).await.expect("an answer");
    assert_eq!((model.calls(), began.elapsed()), (22, secs(2 + 2)), "two chunks of a second, twice");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_looks_at_chunks_none_are_made_for_the_race() {
    let idle = Arc::new(AtomicUsize::new(0));
    let seen = idle.clone();
    let look = tower::util::MapRequestLayer::new(move |req: ModelRequest| {
        seen.fetch_add(usize::from(req.sink.is_idle()), Ordering::Relaxed);
        req
    });
    let model = ScriptedModel::new([slow("first", 20), slow("second", 1)]);
    LayeredModel::new(model, (HedgeLayer::after(secs(5)), look)).call(ask()).await.expect("an answer");
    assert_eq!(idle.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn the_losers_connection_is_closed() {
    let open = Arc::new(());
    let (held, count) = (open.clone(), Arc::new(AtomicUsize::new(0)));
    let transport = transport_fn(move |_| {
        let (held, first) = (held.clone(), count.fetch_add(1, Ordering::Relaxed) == 0);
        async move {
            let body: stream::BoxStream<'static, Result<Bytes>> = if first {
                stream::pending().boxed()
            } else {
                let said = delta(r#"{"content":"hello"}"#) + &finish("stop") + DONE;
                stream::once(async { Ok(said.into()) }).boxed()
            };
            let body = body.map(move |item| {
                let _ = &held;
                item
            });
            let stream = Response::builder().header("content-type", "text/event-stream");
            Ok(stream.body(Body::new(body)).expect("a response"))
        }
    });
    let model = agent_llm::model("openai:m").transport(transport).build().expect("a model");
    let hedged = LayeredModel::new(model, HedgeLayer::after(secs(5)));
    let before = Arc::strong_count(&open);
    let response = hedged.call(ask_to_stream()).await.expect("an answer");
    assert_eq!((response.message.text().as_str(), Arc::strong_count(&open)), ("hello", before));
}
