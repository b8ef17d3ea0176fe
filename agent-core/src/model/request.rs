//! One model call: what goes in and what comes out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ChunkSink, ModelInfo, ModelParams};
use crate::{
    flow::Verdict,
    history::History,
    message::{AssistantMessage, SystemMessage},
    run::RunCx,
    tool::ToolSpecs,
    usage::Usage,
};

/// One model call. Cheap to clone, so that stock retry and hedge layers apply.
///
/// Everything here is the view of **this call**: a hook that edits it changes nothing that is kept. What is kept is
/// changed with [`RunCx::replace_history`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The run.
    pub cx: RunCx,
    /// What is known of the model that is asked, if whoever asks knows it.
    pub model: Option<Arc<ModelInfo>>,
    /// The system prompt. It is the agent's, not part of the history.
    pub system: Option<SystemMessage>,
    /// The conversation.
    pub messages: History,
    /// The tools on offer.
    pub tools: ToolSpecs,
    /// How to answer.
    pub params: Arc<ModelParams>,
    /// Whether the provider is asked to stream. Layers see the same either way.
    pub stream: bool,
    /// Where chunks go.
    pub sink: ChunkSink,
    /// True if an earlier process, or an earlier attempt to answer a question, began this call.
    pub resumed: bool,
    /// True inside of what the run's budget set aside for this call: whoever makes a second call out of it sets that aside
    /// too.
    pub reserved: bool,
}

impl ModelRequest {
    /// A call for the run `cx` over its kept history, with nothing else set.
    pub fn new(cx: RunCx) -> Self {
        let messages = cx.history();
        Self {
            cx,
            model: None,
            system: None,
            messages,
            tools: ToolSpecs::default(),
            params: ModelParams::unset(),
            stream: false,
            sink: ChunkSink::default(),
            resumed: false,
            reserved: false,
        }
    }

    /// True if a reader of the run's events is about to fall behind: a model that streams gives way to it.
    pub fn is_crowded(&self) -> bool {
        self.cx.emitter().hub().is_crowded()
    }
}

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
    /// Anything else, in the provider's words.
    Other(String),
}
