//! Complete answers of models.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{flow::Verdict, message::AssistantMessage, usage::Usage};

/// One complete answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelResponse {
    /// The model's message.
    pub message: AssistantMessage,
    /// Reason why the answer ended.
    #[serde(default)]
    pub finish: FinishReason,
    /// Usage of the call, as far as the provider reported it.
    #[serde(default)]
    pub usage: Usage,
    /// Name of the answering model, as reported by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// Further provider-specific response fields: log probabilities, further candidates, safety
    /// ratings, sources.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// True if a cache gave the answer and no model was called. Not persisted.
    #[serde(skip)]
    pub cached: bool,
    /// Verdict of `after_model` hooks for the executor's loop. Not persisted.
    #[serde(skip)]
    pub verdict: Verdict,
}

impl ModelResponse {
    /// Creates an answer with this message that ended normally.
    pub fn new(message: impl Into<AssistantMessage>) -> Self {
        let message = message.into();
        let finish = if message.has_calls() { FinishReason::ToolCalls } else { FinishReason::Stop };
        Self {
            message,
            finish,
            usage: Usage::default(),
            model: None,
            id: None,
            details: Map::new(),
            cached: false,
            verdict: Verdict::Proceed,
        }
    }

    /// Sets the reason why the answer ended.
    #[must_use]
    pub fn with_finish(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Sets the usage.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// Reason why an answer ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The answer is complete.
    #[default]
    Stop,
    /// The model requested tool calls.
    ToolCalls,
    /// The model reached its token limit.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    /// The model is still working with provider-hosted tools, and continues when it is called
    /// again.
    Paused,
    /// A provider-specific reason.
    Other(String),
}
