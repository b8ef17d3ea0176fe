//! [`ResponseCache`].

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{EventKind, ModelInfo, ModelRequest, ModelResponse, Result, RunCx, Usage, Verdict};
use serde_json::json;

use super::{CacheKey, CacheLayer, CacheStore, flights::Flights};

/// The field of [`ModelResponse::details`] that marks an answer from a [`ResponseCache`]. It has `hit`, which is true, and
/// `saved`, the usage of the call that was not made again.
pub const CACHE_MARK: &str = "response_cache";

/// True if the answer came from a [`ResponseCache`].
pub fn is_hit(response: &ModelResponse) -> bool {
    response.details.get(CACHE_MARK).is_some_and(|mark| mark["hit"] == true)
}

/// Answers model calls that were answered before.
///
/// A cache is shared by clones and by its [layers](Self::layer): give a layer to each agent that may profit.
///
/// # What it does
///
/// * The same request, as [`CacheKey`] has it, gets the answer of the first. Its usage is **zero, and zero calls**, so that
///   no total counts it; [`CACHE_MARK`] in its details says so, and what was saved.
/// * A hit is told to whoever listens to chunks, as if it were streamed.
/// * Requests that are the same and under way at once are one call: the others wait for it. If it fails, the next of them
///   makes it.
/// * Errors are not kept. Neither is what layers outside made of an answer: each call's own layers see the model's.
///
/// Models give other answers each time they are asked; a cache gives the same. It is for tests, for work that is done
/// again and again, and for many agents that ask the same, not for creative ones. Which calls it leaves alone is chosen with
/// [`CacheLayer::skip`].
///
/// # Example
///
/// ```
/// use agent_core::{History, Message, Model, ModelRequest, ModelService, testing::detached_run};
/// use agent_llm::{ScriptedModel, Turn, cache::{MemoryCache, ResponseCache, is_hit}};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = ScriptedModel::new([Turn::text("42")]); // it has one answer only
/// let cache = ResponseCache::new(MemoryCache::new());
/// let layer = cache.layer(model.info());
/// let service = service_fn(move |req: ModelRequest| {
///     let model = model.clone();
///     async move { model.call(req).await }
/// });
/// let stack = ModelService::new(layer.layer(ModelService::new(service)));
///
/// let run = detached_run(History::from_messages([Message::user("6 x 7?")])?);
/// let first = stack.clone().oneshot(ModelRequest::new(run.cx().clone())).await?;
/// let again = stack.oneshot(ModelRequest::new(run.cx().clone())).await?;
/// assert_eq!((first.message.text(), first.usage.calls), ("42".to_owned(), 1));
/// assert_eq!((again.message.text(), again.usage.calls), ("42".to_owned(), 0));
/// assert!(is_hit(&again) && !is_hit(&first));
/// # Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ResponseCache(Arc<Shared>);

struct Shared {
    store: Box<dyn CacheStore>,
    flights: Flights,
    stats: Mutex<CacheStats>,
}

/// How useful a [`ResponseCache`] has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Calls that were answered from the cache.
    pub hits: u64,
    /// Calls that the model had to answer.
    pub misses: u64,
    /// What the hits would have used.
    pub saved: Usage,
}

impl ResponseCache {
    /// A cache that keeps its answers in `store`.
    pub fn new(store: impl CacheStore) -> Self {
        Self(Arc::new(Shared { store: Box::new(store), flights: Flights::default(), stats: Mutex::default() }))
    }

    /// A layer for calls of `model`, whose provider and name are part of the key.
    pub fn layer(&self, model: ModelInfo) -> CacheLayer {
        CacheLayer::new(self.clone(), model)
    }

    /// How useful it has been.
    pub fn stats(&self) -> CacheStats {
        *self.counts()
    }

    fn counts(&self) -> MutexGuard<'_, CacheStats> {
        self.0.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn flights(&self) -> &Flights {
        &self.0.flights
    }

    pub(super) async fn get(&self, cx: &RunCx, key: &CacheKey) -> Option<Arc<ModelResponse>> {
        self.0.store.get(key).await.unwrap_or_else(|e| {
            cx.emit(EventKind::Warning { message: format!("the response cache could not be read: {e}") });
            None
        })
    }

    /// Keeps an answer of the model.
    pub(super) async fn put(&self, cx: &RunCx, key: CacheKey, response: &ModelResponse) {
        self.counts().misses += 1;
        let mut kept = response.clone();
        kept.verdict = Verdict::Proceed; // it was meant for the call that got it
        if let Err(e) = self.0.store.put(key, Arc::new(kept)).await {
            cx.emit(EventKind::Warning { message: format!("the response cache could not be written: {e}") });
        }
    }

    /// The answer to `req` that an answer from the store is.
    pub(super) fn answer(&self, req: &ModelRequest, kept: &ModelResponse) -> Result<ModelResponse> {
        let mut response = kept.clone();
        response.message = req.sink.collect(response.message)?;
        let saved = std::mem::take(&mut response.usage);
        response.details.insert(CACHE_MARK.to_owned(), json!({"hit": true, "saved": saved}));
        let mut stats = self.counts();
        stats.hits += 1;
        stats.saved += saved;
        Ok(response)
    }
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
