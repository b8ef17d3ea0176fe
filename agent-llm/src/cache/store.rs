//! [`CacheStore`].

use std::sync::Arc;

use agent_core::{ModelResponse, Result, async_trait};

use super::CacheKey;

/// Where a [`ResponseCache`](super::ResponseCache) keeps answers. [`MemoryCache`](super::MemoryCache) is one; an application
/// can have its own, which other processes share: a [`ModelResponse`] can be written as JSON and read back.
///
/// How long an answer is kept, and how many are, is the store's affair. A store that fails does not fail the call: the
/// failure is reported in the run's events, and the model is asked.
#[async_trait]
pub trait CacheStore: Send + Sync + 'static {
    /// The answer that is kept under `key`, if there still is one.
    ///
    /// # Errors
    /// If the store failed.
    async fn get(&self, key: &CacheKey) -> Result<Option<Arc<ModelResponse>>>;

    /// Keeps an answer; another one under this key is replaced.
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
