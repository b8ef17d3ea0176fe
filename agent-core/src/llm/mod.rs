//! Data types of model calls, independent of any run. The public module [`model`](crate::model)
//! re-exports them.

mod builder;
mod chunk;
mod correction;
mod info;
mod params;
mod response;
mod tokens;

pub(crate) use self::tokens::Costs;
pub use self::{
    builder::MessageBuilder,
    chunk::{Chunk, ChunkSink, Collector},
    correction::Correction,
    info::{MediaKind, ModelInfo, TokenCounter},
    params::{Effort, Modality, ModelParams, OutputFormat, ToolChoice, Voice},
    response::{FinishReason, ModelResponse},
    tokens::ApproximateCounter,
};
