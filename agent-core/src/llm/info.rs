//! [`ModelInfo`] and [`TokenCounter`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::tokens::USUAL;
use crate::{
    history::History,
    message::{Media, Message, SystemMessage},
    tooling::ToolSpecs,
};

/// Name and capabilities of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The model's name, as its provider knows it.
    pub name: String,
    /// Name of the provider; empty if there is no provider.
    #[serde(default)]
    pub provider: String,
    /// Context window in tokens, for request and answer together, if known.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Maximum number of tokens of one answer, if known.
    #[serde(default)]
    pub max_output: Option<u64>,
    /// Tokens that a request reserves for the answer if it sets no limit: some protocols insist on
    /// a number. Default: none are reserved.
    #[serde(default)]
    pub reserved_output: Option<u64>,
    /// True if the model supports tools. An agent with tools cannot be built on a model without.
    /// Default: true.
    #[serde(default = "yes")]
    pub tools: bool,
    /// True if the provider enforces a JSON Schema ([`ModelParams::output`](crate::ModelParams)),
    /// also together with tools. Default: false.
    #[serde(default)]
    pub json_schema: bool,
}

fn yes() -> bool {
    true
}

impl ModelInfo {
    /// Creates the info of a model from its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: String::new(),
            context_window: None,
            max_output: None,
            reserved_output: None,
            tools: true,
            json_schema: false,
        }
    }

    /// Sets the provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = provider.into();
        self
    }

    /// Sets the context window, in tokens.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// Sets the tokens that a request reserves for the answer if it sets no limit.
    #[must_use]
    pub fn with_reserved_output(mut self, tokens: u64) -> Self {
        self.reserved_output = Some(tokens);
        self
    }

    /// Returns the tokens that a prompt may have beside an answer of at most `max_tokens`; `None` if
    /// the context window is not known. The result is a quarter of the window at least: a limit of
    /// the answer as large as the window is lowered by the provider, or by the wire.
    ///
    /// ```
    /// use agent_core::ModelInfo;
    ///
    /// let claude = ModelInfo::new("claude").with_context_window(200_000).with_reserved_output(32_000);
    /// assert_eq!(claude.prompt_window(None), Some(168_000));
    /// assert_eq!(claude.prompt_window(Some(64_000)), Some(136_000));
    /// assert_eq!(claude.prompt_window(Some(200_000)), Some(50_000));
    /// ```
    pub fn prompt_window(&self, max_tokens: Option<u64>) -> Option<u64> {
        let window = self.context_window?;
        let answer = max_tokens.or(self.reserved_output).unwrap_or(0);
        Some(window.saturating_sub(answer).max(window / 4))
    }

    /// Declares that the model does not support tools.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// Declares that the provider enforces a JSON Schema.
    #[must_use]
    pub fn with_json_schema(mut self) -> Self {
        self.json_schema = true;
        self
    }
}

/// Kind of a [`Media`], by its position in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MediaKind {
    /// An image.
    Image,
    /// A document: pages, or audio and video if a wire accepts them as documents.
    Document,
}

/// Counts the tokens of a model.
pub trait TokenCounter: Send + Sync + 'static {
    /// Tokens of a text.
    fn text(&self, text: &str) -> u64;

    /// Tokens of an image or a document. Default: 85 for an image, which corresponds to low detail,
    /// and 1,000 for a document.
    fn media(&self, media: &Media, kind: MediaKind) -> u64 {
        let _ = media;
        USUAL.media(kind)
    }

    /// Tokens of one message, including the provider's overhead. Default: the tokens of its texts
    /// plus a typical overhead.
    fn message(&self, message: &Message) -> u64 {
        USUAL.message(message, |text| self.text(text), |media, kind| self.media(media, kind))
    }

    /// Tokens of the offered tools. Default: the tokens of their texts plus a typical overhead.
    fn tools(&self, tools: &ToolSpecs) -> u64 {
        USUAL.tools(tools, |text| self.text(text))
    }

    /// Tokens of all messages of a conversation.
    fn history(&self, history: &History) -> u64 {
        history.iter().map(|message| self.message(message)).sum()
    }

    /// Tokens of a whole prompt: system prompt, tools and conversation.
    fn prompt(&self, system: Option<&SystemMessage>, tools: &ToolSpecs, messages: &History) -> u64 {
        let system = system.map_or(0, |system| self.message(&Message::System(system.clone())));
        system + self.tools(tools) + self.history(messages)
    }
}

impl<C: TokenCounter + ?Sized> TokenCounter for Arc<C> {
    fn text(&self, text: &str) -> u64 {
        (**self).text(text)
    }

    fn media(&self, media: &Media, kind: MediaKind) -> u64 {
        (**self).media(media, kind)
    }

    fn message(&self, message: &Message) -> u64 {
        (**self).message(message)
    }

    fn tools(&self, tools: &ToolSpecs) -> u64 {
        (**self).tools(tools)
    }

    fn history(&self, history: &History) -> u64 {
        (**self).history(history)
    }

    fn prompt(&self, system: Option<&SystemMessage>, tools: &ToolSpecs, messages: &History) -> u64 {
        (**self).prompt(system, tools, messages)
    }
}
