//! Layers and caches around embedders.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Error, ErrorKind, History, Message, Model, ModelRequest, Result, Retry, Usage, async_trait, engine::RunDriver,
    event::CircuitState, testing::detached_run,
};
use agent_llm::{
    CircuitBreaker, HedgeLayer, LayeredModel, RateLimiter, RetryLayer, ScriptedModel, Turn,
    embed::{CachedEmbedder, LayeredEmbedder},
    embedder,
};
use agent_retrieval::embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo};
use futures::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::Instant;
use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

use super::provider::{Answer, Provider};

/// Embeds texts by their length, with latency.
#[derive(Clone, Default)]
struct Lengths {
    texts: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
    fails: usize,
    fails_as: Option<ErrorKind>,
    /// Number of calls, from the first, that never complete.
    hangs: usize,
    takes: Duration,
}

#[async_trait]
impl Embedder for Lengths {
    fn info(&self) -> EmbedderInfo {
        EmbedderInfo::new("mine", "lengths")
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        let before = self.calls.fetch_add(1, Ordering::SeqCst);
        self.texts.fetch_add(req.texts.len(), Ordering::SeqCst);
        self.most_open.fetch_max(self.open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        if before < self.hangs {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(self.takes).await;
        self.open.fetch_sub(1, Ordering::SeqCst);
        if before < self.fails {
            return Err(
                Error::new(self.fails_as.unwrap_or(ErrorKind::Overloaded), "busy").with_retry(Retry::Temporary(None))
            );
        }
        let vectors = req.texts.iter().map(|text| vec![text.len() as f32, req.dimensions.unwrap_or(0) as f32]);
        Ok(EmbedResponse::new(vectors.collect(), Usage::new(req.texts.len() as u64, 0)))
    }
}

fn run() -> RunDriver {
    detached_run(History::from_messages([Message::user("hi")]).expect("paired messages"))
}

fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn towers_own_layers_limit_calls_and_end_them() {
    let lengths = Lengths { takes: Duration::from_secs(1), ..Lengths::default() };
    let limited = LayeredEmbedder::new(lengths.clone(), ConcurrencyLimitLayer::new(2));
    let all = join_all((0..6).map(|_| limited.embed(EmbedRequest::query("abc")))).await;
    assert!(all.into_iter().all(|answer| answer.expect("a vector").vectors == [[3.0, 0.0]]));
    assert_eq!((count(&lengths.calls), count(&lengths.most_open)), (6, 2));

    let hasty = LayeredEmbedder::new(lengths, TimeoutLayer::new(Duration::from_millis(10)));
    let error = hasty.embed(EmbedRequest::query("abc")).await.expect_err("too late");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_retry_layer_tries_again_and_a_limit_inside_it_lets_the_next_try_through() {
    let lengths = Lengths { fails: 2, ..Lengths::default() };
    let layers = (RetryLayer::new().retries(2), ConcurrencyLimitLayer::new(1));
    let patient = LayeredEmbedder::new(lengths.clone(), layers.clone());
    assert_eq!(patient.embed(EmbedRequest::query("ab")).await.expect("a vector").vectors, [[2.0, 0.0]]);
    assert_eq!(count(&lengths.calls), 3);
    let hopeless = Lengths { fails: 9, ..Lengths::default() };
    assert!(LayeredEmbedder::new(hopeless.clone(), layers).embed(EmbedRequest::query("ab")).await.is_err());
    assert_eq!(count(&hopeless.calls), 3);
}

#[tokio::test(start_paused = true)]
async fn a_retry_layer_around_an_embedder_by_name_multiplies_nothing() {
    let provider = Provider::new(|_, _| Answer::new(503, json!({"message": "busy"})));
    let named = embedder("mistral:mistral-embed").transport(provider.clone()).retries(2).build().expect("builds");
    let layered = LayeredEmbedder::new(named, RetryLayer::new().retries(2));
    layered.embed(EmbedRequest::query("a")).await.expect_err("busy");
    assert_eq!(provider.calls(), 3, "not nine");
}

#[tokio::test(start_paused = true)]
async fn a_rate_limiter_counts_what_embedders_and_models_of_an_account_ask_and_use() {
    let limiter = RateLimiter::builder("acme").requests_per_minute(3).tokens_per_minute(1_000).build().expect("valid");
    let embedder = LayeredEmbedder::new(Lengths::default(), limiter.layer());
    let model = LayeredModel::new(ScriptedModel::new([Turn::text("hello")]), limiter.layer());
    let began = Instant::now();
    model.call(ModelRequest::new(run().cx().clone())).await.expect("an answer");
    let of_model = limiter.status().tokens;
    for texts in [2, 3] {
        embedder.embed(EmbedRequest::documents((0..texts).map(|_| "abc"))).await.expect("vectors");
    }
    assert_eq!((limiter.status().requests, limiter.status().tokens), (3, of_model + 5), "as the answers say");
    assert_eq!(began.elapsed(), Duration::ZERO);
    embedder.embed(EmbedRequest::query("abc")).await.expect("a vector");
    assert!(began.elapsed() >= Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_is_refused_for_its_rate_is_asked_again_in_its_turn() {
    let lengths = Lengths { fails: 2, fails_as: Some(ErrorKind::RateLimited), ..Lengths::default() };
    let limiter = RateLimiter::builder("acme").build().expect("valid");
    let embedder = LayeredEmbedder::new(lengths.clone(), limiter.layer());
    embedder.embed(EmbedRequest::query("abc")).await.expect("a vector");
    assert_eq!((count(&lengths.calls), limiter.status().refused), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_fails_in_a_row_is_left_alone_for_a_while() {
    let lengths = Lengths { fails: 3, ..Lengths::default() };
    let breaker = CircuitBreaker::new();
    let embedder = LayeredEmbedder::new(lengths.clone(), breaker.layer("mine/lengths"));
    for _ in 0..5 {
        embedder.embed(EmbedRequest::query("abc")).await.expect_err("busy");
    }
    assert_eq!((count(&lengths.calls), breaker.state("mine/lengths")), (3, CircuitState::Open));
    tokio::time::sleep(Duration::from_secs(61)).await;
    embedder.embed(EmbedRequest::query("abc")).await.expect("a vector");
    assert_eq!(breaker.state("mine/lengths"), CircuitState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_slow_embedder_is_asked_a_second_time_and_the_first_answer_wins() {
    let lengths = Lengths { hangs: 1, ..Lengths::default() };
    let embedder = LayeredEmbedder::new(lengths.clone(), HedgeLayer::after(Duration::from_secs(2)));
    let began = Instant::now();
    assert_eq!(embedder.embed(EmbedRequest::query("abc")).await.expect("a vector").vectors, [[3.0, 0.0]]);
    assert_eq!((began.elapsed(), count(&lengths.calls)), (Duration::from_secs(2), 2));
}

#[tokio::test]
async fn a_vector_is_asked_for_once() {
    let lengths = Lengths::default();
    let cached = CachedEmbedder::new(lengths.clone());
    let first = cached.embed(EmbedRequest::documents(["a", "bb", "a"])).await.expect("vectors");
    assert_eq!(first.vectors, [[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]]);
    assert_eq!((first.usage.input, count(&lengths.texts)), (2, 2));
    let second = cached.embed(EmbedRequest::documents(["bb", "ccc"])).await.expect("vectors");
    assert_eq!((second.vectors.len(), second.usage.input, count(&lengths.texts)), (2, 1, 3));
    assert_eq!(cached.embed(EmbedRequest::documents(["a"])).await.expect("a vector").usage, Usage::default());
    cached.embed(EmbedRequest::query("a")).await.expect("a vector");
    cached.embed(EmbedRequest::documents(["a"]).dimensions(7)).await.expect("a vector");
    assert_eq!((count(&lengths.texts), cached.len()), (5, 5), "another purpose and another length are other vectors");
}

#[tokio::test]
async fn a_cache_without_room_keeps_nothing_and_answers_all_the_same() {
    let cached = CachedEmbedder::new(Lengths::default()).max_bytes(10);
    let answer = cached.embed(EmbedRequest::documents(["a", "bb"])).await.expect("vectors");
    assert_eq!((answer.vectors.len(), cached.is_empty()), (2, true));
}

#[tokio::test]
async fn what_failed_is_not_remembered() {
    let cached = CachedEmbedder::new(Lengths { fails: 1, ..Lengths::default() });
    cached.embed(EmbedRequest::query("a")).await.expect_err("busy");
    assert!(cached.is_empty());
    cached.embed(EmbedRequest::query("a")).await.expect("a vector");
}

proptest! {
    #[test]
    fn a_cached_embedder_answers_as_the_one_within(requests in prop::collection::vec(prop::collection::vec("[a-d]{1,3}", 0..8), 1..8), bytes in 0_u64..400) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (plain, cached) = (Lengths::default(), CachedEmbedder::new(Lengths::default()).max_bytes(bytes));
        for texts in requests {
            let one = runtime.block_on(plain.embed(EmbedRequest::documents(&texts))).expect("vectors");
            let other = runtime.block_on(cached.embed(EmbedRequest::documents(&texts))).expect("vectors");
            prop_assert_eq!(one.vectors, other.vectors);
        }
    }
}
