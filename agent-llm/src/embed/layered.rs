//! [`LayeredEmbedder`]: embedder wrapped in tower layers.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{BoxError, BoxFuture, Error, Result, async_trait, boxed};
use agent_retrieval::embed::{EmbedRequest, EmbedResponse, EmbedService, Embedder, EmbedderInfo};
use tower::{Layer, Service};

/// An embedder wrapped in tower layers, which is again an embedder: tower's own, those of this
/// crate ([`RetryLayer`](crate::RetryLayer), [`RateLimiter`](crate::RateLimiter),
/// [`CircuitBreaker`](crate::CircuitBreaker), [`HedgeLayer`](crate::HedgeLayer)), or custom ones.
/// Pass several as a tuple, outermost first.
///
/// An embedding call belongs to no run, so events that these layers emit on a model's run are
/// dropped. The layers see a whole request, even if its texts take several calls.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_retrieval::embed::Embedder;
/// use agent_llm::{
///     RetryLayer,
///     embed::{HashedEmbedder, LayeredEmbedder},
/// };
/// use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};
///
/// let minute = TimeoutLayer::new(Duration::from_secs(60));
/// let layers = (RetryLayer::new(), ConcurrencyLimitLayer::new(2), minute);
/// let embedder = LayeredEmbedder::new(HashedEmbedder::new(), layers);
/// assert_eq!(embedder.info().model, "hashed");
/// ```
#[derive(Clone)]
pub struct LayeredEmbedder {
    embedder: Arc<dyn Embedder>,
    service: Option<EmbedService>,
}

impl LayeredEmbedder {
    /// Wraps `embedder` in `layers`: one layer, or a tuple of layers, outermost first.
    pub fn new<L>(embedder: impl Embedder, layers: L) -> Self
    where
        L: Layer<EmbedService>,
        L::Service: Service<EmbedRequest, Response = EmbedResponse> + Clone + Send + Sync + 'static,
        <L::Service as Service<EmbedRequest>>::Error: Into<BoxError>,
        <L::Service as Service<EmbedRequest>>::Future: Send + 'static,
    {
        let embedder: Arc<dyn Embedder> = Arc::new(embedder);
        let service = layers.layer(EmbedService::from_boxed(Bare(embedder.clone())));
        Self { embedder, service: Some(EmbedService::new(service)) }
    }

    /// Wraps `embedder` without any layer.
    pub(crate) fn bare(embedder: impl Embedder) -> Self {
        Self { embedder: Arc::new(embedder), service: None }
    }
}

#[async_trait]
impl Embedder for LayeredEmbedder {
    fn info(&self) -> EmbedderInfo {
        self.embedder.info()
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        match &self.service {
            Some(service) => service.run(req).await,
            None => self.embedder.embed(req).await,
        }
    }
}

/// An embedder as a tower service.
#[derive(Clone)]
struct Bare(Arc<dyn Embedder>);

impl Service<EmbedRequest> for Bare {
    type Response = EmbedResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<EmbedResponse>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: EmbedRequest) -> Self::Future {
        let embedder = self.0.clone();
        boxed(|| async move { (*embedder).embed(req).await })
    }
}

impl fmt::Debug for LayeredEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredEmbedder").field("info", &self.info()).finish_non_exhaustive()
    }
}
