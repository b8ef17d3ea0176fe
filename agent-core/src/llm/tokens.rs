//! Token counter without a tokenizer, and overhead of messages and tools: providers do not publish
//! it, so the values are estimates.

use super::{TokenCounter, info::MediaKind};
use crate::{
    message::{Block, Media, Message, Part, ServerCall},
    tooling::ToolSpec,
};

/// Token costs of messages and tools besides their texts.
pub(crate) struct Costs {
    /// Overhead of every message.
    pub(crate) message: u64,
    /// Overhead of a call, besides its name and arguments.
    pub(crate) call: u64,
    /// Overhead of a tool's result.
    pub(crate) result: u64,
    /// Overhead of a tool, besides its name, description and schema.
    pub(crate) tool: u64,
    /// Cost of an image.
    pub(crate) image: u64,
    /// Cost of a document.
    pub(crate) document: u64,
    /// Cost of hidden reasoning, by its number of base64 characters.
    pub(crate) hidden: fn(u64) -> u64,
}

/// Typical estimates: an image of low detail, a document of about two pages. Hidden reasoning is
/// base64 of data about as long as the reasoning: 4 characters for 3 bytes, 4 bytes per token.
pub(super) const USUAL: Costs =
    Costs { message: 3, call: 8, result: 6, tool: 4, image: 85, document: 1000, hidden: |base64| base64 * 3 / 16 };

impl Costs {
    /// Tokens of a message, where `text` counts texts and `media` counts media.
    pub(crate) fn message(
        &self,
        message: &Message,
        text: impl Fn(&str) -> u64,
        media: impl Fn(&Media, MediaKind) -> u64,
    ) -> u64 {
        let parts = |parts: &[Part]| parts.iter().map(|p| part(p, &text, &media)).sum::<u64>();
        self.message
            + match message {
                Message::System(m) => parts(m.parts()),
                Message::User(m) => parts(m.parts()),
                Message::Assistant(m) => m.blocks().iter().map(|b| self.block(b, &text, &media)).sum(),
                Message::Tool(m) => self.result + parts(m.parts()),
            }
    }

    /// Tokens of the offered tools, where `text` counts texts.
    pub(crate) fn tools(&self, tools: &[ToolSpec], text: impl Fn(&str) -> u64) -> u64 {
        let tool = |t: &ToolSpec| self.tool + text(&t.name) + text(&t.description) + text(&t.parameters.to_string());
        tools.iter().map(tool).sum()
    }

    /// Tokens of an image or a document of unknown size.
    pub(crate) fn media(&self, kind: MediaKind) -> u64 {
        match kind {
            MediaKind::Image => self.image,
            MediaKind::Document => self.document,
        }
    }

    fn block(&self, block: &Block, text: impl Fn(&str) -> u64, media: impl Fn(&Media, MediaKind) -> u64) -> u64 {
        match block {
            Block::Text(t) => text(&t.text),
            Block::Reasoning(r) => {
                text(&r.text) + r.encrypted.as_ref().map_or(0, |base64| (self.hidden)(base64.len() as u64))
            }
            Block::ToolCall(call) => self.call + text(&call.name) + text(&call.arguments),
            Block::Image(m) => media(m, MediaKind::Image),
            Block::Document(m) => media(m, MediaKind::Document),
            Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => text(raw.json()),
        }
    }
}

fn part(part: &Part, text: impl Fn(&str) -> u64, media: impl Fn(&Media, MediaKind) -> u64) -> u64 {
    match part {
        Part::Text(t) => text(&t.text),
        Part::Image(m) => media(m, MediaKind::Image),
        Part::Document(m) => media(m, MediaKind::Document),
        Part::Other(raw) => text(raw.json()),
    }
}

/// Counts four characters as one token. Accurate to about a third for English prose; too low for
/// most other scripts.
///
/// ```
/// use agent_core::{Message, TokenCounter, model::ApproximateCounter};
///
/// assert_eq!(ApproximateCounter.text("twelve chars"), 3);
/// assert_eq!(ApproximateCounter.message(&Message::user("twelve chars")), 6, "a message costs three more");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ApproximateCounter;

impl TokenCounter for ApproximateCounter {
    fn text(&self, text: &str) -> u64 {
        (text.chars().count() as u64).div_ceil(4)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        message::{AssistantMessage, ToolMessage, UserMessage},
        tooling::ToolSpecs,
    };

    #[test]
    fn calls_results_images_and_tools_have_costs_of_their_own() {
        let count = |m: Message| ApproximateCounter.message(&m);
        let call = AssistantMessage::new(vec![Block::tool_call("c", "look", r#"{"a":1}"#)]);
        assert_eq!(count(Message::Assistant(call)), 3 + 8 + 1 + 2);
        let result = ToolMessage::new("c", "look", Arc::new(vec![Part::text("four")]), false);
        assert_eq!(count(Message::Tool(result)), 3 + 6 + 1);
        let image = UserMessage::new(vec![Part::Image(Media::url("https://example.org/cat.png"))]);
        assert_eq!(count(Message::User(image)), 3 + 85);
        let tools = ToolSpecs::from_iter([ToolSpec::new("look", "Looks.", json!({}))]);
        assert_eq!(ApproximateCounter.tools(&tools), 4 + 1 + 2 + 1);
    }
}
