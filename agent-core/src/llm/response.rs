//! One complete answer of a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{flow::Verdict, message::AssistantMessage, usage::Usage};

/// One complete answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelResponse {
    /// What the model said.
    pub message: AssistantMessage,
    /// Why it ended.
    #[serde(default)]
    pub finish: FinishReason,
    /// What it used, as far as the provider said.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, in the provider's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// What else the provider said, in its own fields: log probabilities, further candidates, safety ratings, sources.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// What `after_model` hooks want of the loop; the executor reads it. Not kept.
    #[serde(skip)]
    pub verdict: Verdict,
}

impl ModelResponse {
    /// An answer of this message, ended normally.
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
            verdict: Verdict::Proceed,
        }
    }

    /// Sets why it ended.
    #[must_use]
    pub fn with_finish(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Sets what it used.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    #[default]
    Stop,
    /// It wants tools to be run.
    ToolCalls,
    /// It reached its token limit.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
    /// It is at work with the provider's own tools, and goes on when it is asked again.
    Paused,
    /// Anything else, in the provider's words.
    Other(String),
}
