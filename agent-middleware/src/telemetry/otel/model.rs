//! Traced models outside of an agent.

use agent_core::{Model, ModelInfo, ModelRequest, ModelResponse, Result, ToolSpec, model::ToolFinding};
use async_trait::async_trait;

use super::{Telemetry, is_wanted};

/// A model whose calls have spans, created by [`Telemetry::model`].
#[derive(Clone, Debug)]
pub struct TracedModel<M> {
    telemetry: Telemetry,
    inner: M,
}

impl<M> TracedModel<M> {
    pub(super) fn new(telemetry: Telemetry, inner: M) -> Self {
        Self { telemetry, inner }
    }
}

#[async_trait]
impl<M: Model> Model for TracedModel<M> {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        self.inner.check_tools(tools)
    }

    async fn call(&self, mut req: ModelRequest) -> Result<ModelResponse> {
        if !is_wanted() {
            return self.inner.call(req).await;
        }
        req.model.get_or_insert_with(|| self.inner.info().into());
        self.telemetry.chat(req, |req| self.inner.call(req)).await
    }
}
