//! [`LayeredModel`]: model wrapped in tower layers.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{
    BoxError, BoxFuture, Error, Model, ModelInfo, ModelRequest, ModelResponse, ModelService, Result, ToolSpec,
    async_trait, boxed, model::ToolFinding,
};
use tower::{Layer, Service, ServiceExt};

/// A model wrapped in tower layers, which is again a model: each model of a
/// [`Failover`](crate::Failover) can have its own layers.
///
/// Pass several layers as a tuple, outermost first, as for an agent's `model_layer`. The position
/// differs: an agent's layers wrap the journalled call with its budget reservation, whereas these
/// layers run inside that call, so that everything they do counts as one call of the run.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::Model;
/// use agent_llm::{LayeredModel, RetryLayer, ScriptedModel, Turn};
/// use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};
///
/// let model = ScriptedModel::new([Turn::text("hello")]);
/// let minute = TimeoutLayer::new(Duration::from_secs(60));
/// let model = LayeredModel::new(model, (RetryLayer::new(), ConcurrencyLimitLayer::new(8), minute));
/// assert_eq!(model.info().name, "scripted");
/// ```
#[derive(Clone)]
pub struct LayeredModel {
    model: Arc<dyn Model>,
    service: Option<ModelService>,
}

impl LayeredModel {
    /// Wraps `model` in `layers`: one layer, or a tuple of layers, outermost first.
    pub fn new<L>(model: impl Model, layers: L) -> Self
    where
        L: Layer<ModelService>,
        L::Service: Service<ModelRequest, Response = ModelResponse> + Clone + Send + Sync + 'static,
        <L::Service as Service<ModelRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ModelRequest>>::Future: Send + 'static,
    {
        let model: Arc<dyn Model> = Arc::new(model);
        let service = layers.layer(ModelService::from_boxed(Bare(model.clone())));
        Self { model, service: Some(ModelService::new(service)) }
    }

    /// Wraps `model` without any layer.
    pub(crate) fn bare(model: impl Model) -> Self {
        Self { model: Arc::new(model), service: None }
    }
}

#[async_trait]
impl Model for LayeredModel {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        match &self.service {
            Some(service) => service.clone().oneshot(req).await,
            None => self.model.call(req).await,
        }
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        self.model.check_tools(tools)
    }

    async fn warm_up(&self) -> Result<()> {
        self.model.warm_up().await
    }

    async fn close(&self) -> Result<()> {
        self.model.close().await
    }
}

/// A model as a tower service.
#[derive(Clone)]
struct Bare(Arc<dyn Model>);

impl Service<ModelRequest> for Bare {
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        let model = self.0.clone();
        boxed(|| async move { (*model).call(req).await })
    }
}

impl fmt::Debug for LayeredModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredModel").field("info", &self.info()).finish_non_exhaustive()
    }
}
