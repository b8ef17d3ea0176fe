//! Model calls: a request with a chunk sink in, one complete message out.
//!
//! Authors of models implement [`Model`]; what applications set is [`ModelParams`], what hooks see of a call [`ModelRequest`]
//! and [`ModelResponse`]. What a call costs in tokens and money is counted by a [`TokenCounter`] and a [`PriceTable`].
//!
//! ```
//! use agent_core::model::{FinishReason, ModelResponse, Usage};
//!
//! let answer = ModelResponse::new("It is noon.").with_usage(Usage::new(12, 4));
//! assert_eq!((answer.finish, answer.usage.total()), (FinishReason::Stop, 16));
//! ```

mod allowance;
mod call_model;
mod request;
mod spoken;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::{request::ModelRequest, spoken::Spoken};
pub use crate::llm::{
    ApproximateCounter, Chunk, ChunkSink, Collector, Correction, Effort, FinishReason, MediaKind, MessageBuilder,
    Modality, ModelInfo, ModelParams, ModelResponse, OutputFormat, TokenCounter, ToolChoice, Voice,
};
pub use crate::{
    api_key::API_KEY_PREFIXES,
    backoff::Backoff,
    usage::{PriceTable, Usage},
};
use crate::{error::Result, service::SharedService};

/// A composed stack around model calls.
pub type ModelService = SharedService<ModelRequest, ModelResponse>;

/// A language model, as an agent calls it.
///
/// A call **completes when its message is complete**. What arrives meanwhile goes through `req.sink`, and the message is
/// made of what the sink let through; [`ChunkSink::collect`] does both. Dropping the future ends the call.
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
    /// What is known of the model: its name, and what it can take.
    fn info(&self) -> ModelInfo;

    /// Answers `req`.
    ///
    /// # Errors
    /// With a kind and a [`Retry`](crate::Retry) that layers can act on. After chunks went out, a failed call pushes
    /// [`Chunk::Restart`] only if it goes on itself; the retrying layer does it otherwise.
    async fn call(&self, req: ModelRequest) -> Result<ModelResponse>;

    /// Opens what the model needs, such as a connection: before the first run of an agent that has it. May be called again,
    /// also while calls are under way, and then does nothing.
    ///
    /// # Errors
    /// Fails the run, before the model is called; the next run tries again.
    async fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Gives back what [`warm_up`](Self::warm_up) opened. A later run warms up again.
    ///
    /// # Errors
    /// If something could not be given back properly; the model counts as closed all the same.
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

    async fn warm_up(&self) -> Result<()> {
        (**self).warm_up().await
    }

    async fn close(&self) -> Result<()> {
        (**self).close().await
    }
}
