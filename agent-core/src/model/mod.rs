//! Models: a request with a chunk sink in, one complete message out.
//!
//! Model authors implement [`Model`]; applications set [`ModelParams`]; hooks receive the
//! [`ModelRequest`] and the [`ModelResponse`] of a call. A [`TokenCounter`] and a [`PriceTable`]
//! compute the tokens and the cost of a call.
//!
//! ```
//! use agent_core::model::{FinishReason, ModelResponse, Usage};
//!
//! let answer = ModelResponse::new("It is noon.").with_usage(Usage::new(12, 4));
//! assert_eq!((answer.finish, answer.usage.total()), (FinishReason::Stop, 16));
//! ```

mod allowance;
mod call_model;
mod finding;
mod request;
mod spoken;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::{finding::ToolFinding, request::ModelRequest, spoken::Spoken};
pub use crate::llm::{
    ApproximateCounter, Chunk, ChunkSink, Collector, Correction, Effort, FinishReason, MediaKind, MessageBuilder,
    Modality, ModelInfo, ModelParams, ModelResponse, OutputFormat, TokenCounter, ToolChoice, Voice,
};
pub use crate::{
    api_key::API_KEY_PREFIXES,
    backoff::Backoff,
    usage::{PriceTable, Usage},
};
use crate::{error::Result, service::SharedService, tooling::ToolSpec};

/// A composed service stack around model calls.
pub type ModelService = SharedService<ModelRequest, ModelResponse>;

/// A language model.
///
/// A call **completes when its message is complete**. Chunks that arrive meanwhile pass through
/// `req.sink`, and the message is built from the chunks that the sink lets through;
/// [`ChunkSink::collect`] does both. Dropping the future ends the call.
///
/// ```
/// use agent_core::{AssistantMessage, Model, ModelInfo, ModelRequest, ModelResponse, Result, async_trait};
///
/// struct Echo;
///
/// #[async_trait]
/// impl Model for Echo {
///     fn info(&self) -> ModelInfo {
///         ModelInfo::new("echo")
///     }
///
///     async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
///         let said = req.messages.last().map(|m| m.text()).unwrap_or_default();
///         req.sink.collect(AssistantMessage::from(said.as_str())).map(ModelResponse::new)
///     }
/// }
/// ```
#[async_trait]
pub trait Model: Send + Sync + 'static {
    /// Returns the model's name and capabilities.
    fn info(&self) -> ModelInfo;

    /// Answers `req`.
    ///
    /// # Errors
    /// Errors have a kind and a [`Retry`](crate::Retry) that layers can act on. If a call fails
    /// after it emitted chunks, the model pushes [`Chunk::Restart`] only if it continues itself;
    /// otherwise the retrying layer does.
    async fn call(&self, req: ModelRequest) -> Result<ModelResponse>;

    /// Lists the rules of the model's provider that these tools violate, without a request. A call
    /// applies the same rules: it offers the tools in the [repaired](ToolFinding::repair) form.
    /// Default: none.
    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        let _ = tools;
        Vec::new()
    }

    /// Opens resources that the model needs, such as a connection: before the first run of an agent
    /// that has it. May be called again, also during calls, and must then do nothing.
    ///
    /// # Errors
    /// An error fails the run before the model is called; the next run tries again.
    async fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Releases the resources that [`warm_up`](Self::warm_up) opened. A later run warms up again.
    ///
    /// # Errors
    /// If a resource could not be released properly; the model counts as closed anyway.
    async fn close(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl<M: Model + ?Sized> Model for Arc<M> {
    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        (**self).call(req).await
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        (**self).check_tools(tools)
    }

    async fn warm_up(&self) -> Result<()> {
        (**self).warm_up().await
    }

    async fn close(&self) -> Result<()> {
        (**self).close().await
    }
}
