//! What is known of a model, and the two things that are looked up by its name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::tokens::USUAL;
use crate::{
    history::History,
    message::{Media, Message, SystemMessage},
    tooling::ToolSpecs,
};

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The model's name, as its provider knows it.
    pub name: String,
    /// Who serves it; empty if nobody does.
    #[serde(default)]
    pub provider: String,
    /// Tokens that a request and its answer may have together, if known.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Tokens that one answer may have, if known.
    #[serde(default)]
    pub max_output: Option<u64>,
    /// Whether tools can be offered to it. An agent with tools refuses to be built on a model without. Default: true.
    #[serde(default = "yes")]
    pub tools: bool,
    /// Whether it is held to a JSON Schema ([`ModelParams::output`](crate::ModelParams)) by its provider, beside tools too.
    /// Default: false.
    #[serde(default)]
    pub json_schema: bool,
}

fn yes() -> bool {
    true
}

impl ModelInfo {
    /// A model of which only the name is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: String::new(),
            context_window: None,
            max_output: None,
            tools: true,
            json_schema: false,
        }
    }

    /// Sets who serves it.
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

    /// Says that tools cannot be offered to it.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// Says that its provider holds it to a JSON Schema.
    #[must_use]
    pub fn with_json_schema(mut self) -> Self {
        self.json_schema = true;
        self
    }
}

/// What a [`Media`] is, by the place where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MediaKind {
    /// An image.
    Image,
    /// A document: pages, or sound and film where a wire takes them as documents.
    Document,
}

/// Counts tokens as a model would.
pub trait TokenCounter: Send + Sync + 'static {
    /// Tokens of plain text.
    fn text(&self, text: &str) -> u64;

    /// Tokens of an image or a document. Default: 85 of an image, which is one of low detail, and 1,000 of a document.
    fn media(&self, media: &Media, kind: MediaKind) -> u64 {
        let _ = media;
        USUAL.media(kind)
    }

    /// Tokens of one message with the overhead a provider adds to it. Default: a usual estimate around its texts.
    fn message(&self, message: &Message) -> u64 {
        USUAL.message(message, |text| self.text(text), |media, kind| self.media(media, kind))
    }

    /// Tokens of the tools that are offered. Default: a usual estimate around their texts.
    fn tools(&self, tools: &ToolSpecs) -> u64 {
        USUAL.tools(tools, |text| self.text(text))
    }

    /// Tokens of all messages of a conversation.
    fn history(&self, history: &History) -> u64 {
        history.iter().map(|message| self.message(message)).sum()
    }

    /// Tokens of a whole prompt: of a system prompt, tools and a conversation.
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
