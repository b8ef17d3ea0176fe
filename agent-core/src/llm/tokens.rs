//! A counter without a tokenizer, and what messages and tools cost beside and around their text: providers do not say it,
//! these are usual estimates.

use super::TokenCounter;
use crate::{
    message::{Block, Message, Part, Reasoning, ServerCall},
    tooling::ToolSpec,
};

/// Around every message.
const MESSAGE: u64 = 3;
/// Around a call's name and arguments.
const TOOL_CALL: u64 = 8;
/// Around a tool's result.
const TOOL_RESULT: u64 = 6;
/// Around a tool's name, description and schema.
const TOOL: u64 = 4;
/// An image of low detail.
const IMAGE: u64 = 85;
/// A document of about two pages.
const DOCUMENT: u64 = 1000;

/// Tokens of a message, with `text` counting its texts.
pub(super) fn message(message: &Message, text: impl Fn(&str) -> u64) -> u64 {
    let parts = |parts: &[Part]| parts.iter().map(|p| part(p, &text)).sum::<u64>();
    MESSAGE
        + match message {
            Message::System(m) => parts(m.parts()),
            Message::User(m) => parts(m.parts()),
            Message::Assistant(m) => m.blocks().iter().map(|b| block(b, &text)).sum(),
            Message::Tool(m) => TOOL_RESULT + parts(m.parts()),
        }
}

/// Tokens of the tools on offer, with `text` counting their texts.
pub(super) fn tools(tools: &[ToolSpec], text: impl Fn(&str) -> u64) -> u64 {
    let tool = |t: &ToolSpec| TOOL + text(&t.name) + text(&t.description) + text(&t.parameters.to_string());
    tools.iter().map(tool).sum()
}

fn part(part: &Part, text: impl Fn(&str) -> u64) -> u64 {
    match part {
        Part::Text(t) => text(&t.text),
        Part::Image(_) => IMAGE,
        Part::Document(_) => DOCUMENT,
        Part::Other(raw) => text(raw.json()),
    }
}

fn block(block: &Block, text: impl Fn(&str) -> u64) -> u64 {
    match block {
        Block::Text(t) => text(&t.text),
        Block::Reasoning(r) => reasoning(r, text),
        Block::ToolCall(call) => TOOL_CALL + text(&call.name) + text(&call.arguments),
        Block::Image(_) => IMAGE,
        Block::Document(_) => DOCUMENT,
        Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => text(raw.json()),
    }
}

/// Hidden thinking is base64 of something about as long as the thinking: 4 characters for 3 bytes, 4 bytes a token.
fn reasoning(reasoning: &Reasoning, text: impl Fn(&str) -> u64) -> u64 {
    let hidden = reasoning.encrypted.as_ref().map_or(0, |base64| base64.len() as u64 * 3 / 16);
    text(&reasoning.text) + hidden
}

/// Counts four characters as a token. Good to about a third for English prose; too low for most other scripts.
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
        message::{AssistantMessage, Media, ToolMessage, UserMessage},
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
