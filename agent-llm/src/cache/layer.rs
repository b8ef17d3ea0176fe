//! [`CacheLayer`]: tower layer that answers from a response cache.

use std::{fmt, sync::Arc};

use agent_core::{ModelInfo, ModelRequest};
use tower::Layer;

use super::{Cached, ResponseCache};

type Skip = dyn Fn(&ModelRequest) -> bool + Send + Sync;

/// Answers calls of one model from a [`ResponseCache`], which it shares with other layers.
///
/// # Order
///
/// ```text
/// // right: a cached answer bypasses the retry and the rate limiter
/// .model_layer(cache.layer(info)).model_layer(RetryLayer::new()).model_layer(limiter.layer())
/// // wrong: a cached answer waits in the rate limiter's queue
/// .model_layer(limiter.layer()).model_layer(cache.layer(info))
/// ```
#[derive(Clone)]
pub struct CacheLayer {
    cache: ResponseCache,
    model: Arc<ModelInfo>,
    skip: Arc<Skip>,
}

impl CacheLayer {
    pub(super) fn new(cache: ResponseCache, model: ModelInfo) -> Self {
        Self { cache, model: Arc::new(model), skip: Arc::new(|_| false) }
    }

    /// Sets the calls that bypass the cache: they are neither answered from it nor stored. Default:
    /// none. The run is in the request, so that the decision can depend on its agent or on one of
    /// its [resources](agent_core::RunCx::resources).
    ///
    /// ```
    /// # use agent_core::ModelInfo;
    /// # use agent_llm::cache::{MemoryCache, ResponseCache};
    /// # let cache = ResponseCache::new(MemoryCache::new());
    /// let layer = cache.layer(ModelInfo::new("m")).skip(|req| req.params.temperature.is_some_and(|t| t > 0.0));
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn skip(mut self, skip: impl Fn(&ModelRequest) -> bool + Send + Sync + 'static) -> Self {
        self.skip = Arc::new(skip);
        self
    }

    /// Returns the cache.
    pub fn cache(&self) -> &ResponseCache {
        &self.cache
    }

    pub(super) fn model(&self) -> &ModelInfo {
        &self.model
    }

    pub(super) fn skips(&self, req: &ModelRequest) -> bool {
        (self.skip)(req)
    }
}

impl<S> Layer<S> for CacheLayer {
    type Service = Cached<S>;

    fn layer(&self, inner: S) -> Cached<S> {
        Cached::new(self.clone(), inner)
    }
}

impl fmt::Debug for CacheLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheLayer").field("model", &self.model).field("cache", &self.cache).finish_non_exhaustive()
    }
}
