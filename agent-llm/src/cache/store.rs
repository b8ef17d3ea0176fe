//! [`CacheStore`]: storage backend of a response cache.

use std::sync::Arc;

use agent_core::{ModelResponse, Result, async_trait};

use super::CacheKey;

/// Storage backend of a [`ResponseCache`](super::ResponseCache).
/// [`MemoryCache`](super::MemoryCache) is one implementation; an application can implement its own,
/// shared between processes: a [`ModelResponse`] can be serialised as JSON and back.
///
/// The store decides on expiry and eviction. A failing store does not fail the call: the failure is
/// reported in the run's events, and the model is called.
#[async_trait]
pub trait CacheStore: Send + Sync + 'static {
    /// Returns the answer stored under `key`, if any.
    ///
    /// # Errors
    /// If the store failed.
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<ModelResponse>>>;

    /// Stores an answer, replacing the previous one of this key.
    ///
    /// # Errors
    /// If the store failed.
    async fn put(&self, key: CacheKey, response: Arc<ModelResponse>) -> Result<()>;
}

#[async_trait]
impl<S: CacheStore + ?Sized> CacheStore for Arc<S> {
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<ModelResponse>>> {
        (**self).get(key).await
    }

    async fn put(&self, key: CacheKey, response: Arc<ModelResponse>) -> Result<()> {
        (**self).put(key, response).await
    }
}
