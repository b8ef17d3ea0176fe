//! A counter without a tokenizer.

use agent_core::{Message, TokenCounter, ToolSpecs};

use super::shape;

/// Counts four characters as a token. Good to about a third for English prose; too low for most other scripts.
///
/// ```
/// use agent_core::{Message, TokenCounter};
/// use agent_llm::tokens::ApproximateCounter;
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

    fn message(&self, message: &Message) -> u64 {
        shape::message(message, |text| self.text(text))
    }

    fn tools(&self, tools: &ToolSpecs) -> u64 {
        shape::tools(tools, |text| self.text(text))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent_core::{AssistantMessage, Block, Media, Part, ToolMessage, ToolSpec, UserMessage};
    use serde_json::json;

    use super::*;

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
