//! [`ResponseCache`]: cache of model responses.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{EventKind, ModelInfo, ModelRequest, ModelResponse, Result, RunCx, Usage, Verdict};
use serde_json::json;

use super::{CacheKey, CacheLayer, CacheStore, flights::Flights};

/// Field of [`ModelResponse::details`] that marks an answer from a [`ResponseCache`]. It contains
/// `hit`, which is true, and `saved`, the usage of the call that the hit avoided.
pub const CACHE_MARK: &str = "response_cache";

/// Returns true if the answer came from a [`ResponseCache`].
pub fn is_hit(response: &ModelResponse) -> bool {
    response.details.get(CACHE_MARK).is_some_and(|mark| mark["hit"] == true)
}

/// Cache of model responses.
///
/// Clones and [layers](Self::layer) share a cache: add a layer to each agent that should use it.
///
/// # Behaviour
///
/// * A request with the same [`CacheKey`] gets the answer of the first. Its usage is **zero, and
///   zero calls**, so that no total counts it; [`CACHE_MARK`] in its details marks the hit and
///   holds the saved usage.
/// * A hit emits chunks to the listeners, as if it were streamed.
/// * Identical concurrent requests are merged into one call: the others wait for it. If it fails,
///   the next of them makes the call.
/// * Errors are not cached. Nor are the changes that outer layers make to an answer: the cache
///   stores the model's answer, and each call's own layers process it.
///
/// Models answer differently each time; a cache repeats one answer. Use it for tests, for repeated
/// work, and for many agents with the same questions, not for creative tasks. [`CacheLayer::skip`]
/// chooses the calls that bypass the cache.
///
/// # Example
///
/// ```
/// use agent_core::{History, Message, Model, ModelRequest, ModelService, testing::detached_run};
/// use agent_llm::{ScriptedModel, Turn, cache::{MemoryCache, ResponseCache, is_hit}};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = ScriptedModel::new([Turn::text("42")]); // only one answer
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

/// Statistics of a [`ResponseCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Number of calls answered from the cache.
    pub hits: u64,
    /// Number of calls that the model answered.
    pub misses: u64,
    /// Usage that the hits avoided.
    pub saved: Usage,
}

impl ResponseCache {
    /// Creates a cache that keeps its answers in `store`.
    pub fn new(store: impl CacheStore) -> Self {
        Self(Arc::new(Shared { store: Box::new(store), flights: Flights::default(), stats: Mutex::default() }))
    }

    /// Returns a layer for calls of `model`, whose provider and name are part of the key.
    pub fn layer(&self, model: ModelInfo) -> CacheLayer {
        CacheLayer::new(self.clone(), model)
    }

    /// Returns the statistics.
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

    /// Stores an answer of the model.
    pub(super) async fn put(&self, cx: &RunCx, key: CacheKey, response: &ModelResponse) {
        self.counts().misses += 1;
        let mut kept = response.clone();
        kept.verdict = Verdict::Proceed; // the verdict applied only to the original call
        if let Err(e) = self.0.store.put(key, Arc::new(kept)).await {
            cx.emit(EventKind::Warning { message: format!("the response cache could not be written: {e}") });
        }
    }

    /// Converts a stored answer into the answer to `req`.
    pub(super) fn answer(&self, req: &ModelRequest, kept: &ModelResponse) -> Result<ModelResponse> {
        let mut response = kept.clone();
        response.message = req.sink.collect(response.message)?;
        response.cached = true;
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
