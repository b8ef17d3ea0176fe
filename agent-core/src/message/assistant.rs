//! Assistant messages, with the provider's original JSON.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{Block, Citation, Raw, ServerCall, ToolCall, part::join};

/// Message of a model: ordered blocks, and the provider's JSON of the whole message if available.
///
/// An unedited message is sent back to its provider byte for byte. Editing it through
/// [`blocks_mut`](Self::blocks_mut) marks it as edited: from then on the blocks are authoritative,
/// and only those parts of the raw JSON are kept that the blocks do not cover.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AssistantMessage(Arc<Inner>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Inner {
    blocks: Vec<Block>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Raw>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
}

impl AssistantMessage {
    /// Creates a message from blocks.
    pub fn new(blocks: Vec<Block>) -> Self {
        Self(Arc::new(Inner { blocks, raw: None, edited: false }))
    }

    /// Creates a message as received from a provider: `raw` is its JSON, and `blocks` is the parsed
    /// form.
    pub fn from_provider(blocks: Vec<Block>, raw: Raw) -> Self {
        Self(Arc::new(Inner { blocks, raw: Some(raw), edited: false }))
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.0.blocks
    }

    /// The blocks, mutable. Marks the message as edited; shared content is copied first.
    pub fn blocks_mut(&mut self) -> &mut Vec<Block> {
        let inner = Arc::make_mut(&mut self.0);
        inner.edited = true;
        &mut inner.blocks
    }

    /// The provider's JSON of the whole message.
    pub fn raw(&self) -> Option<&Raw> {
        self.0.raw.as_ref()
    }

    /// True if the blocks were edited after the provider sent them.
    pub fn is_edited(&self) -> bool {
        self.0.edited
    }

    /// The text blocks, joined by line breaks.
    pub fn text(&self) -> String {
        join(self.0.blocks.iter().filter_map(|b| match b {
            Block::Text(t) => Some(t.text.as_str()),
            _ => None,
        }))
    }

    /// The words with which the model refused to answer, where its provider tells them apart from text.
    pub fn refusal(&self) -> Option<String> {
        self.0.blocks.iter().find_map(|block| {
            let Block::Other(raw) = block else { return None };
            let said: serde_json::Value = serde_json::from_str(raw.json()).ok()?;
            said.get("refusal")?.as_str().filter(|words| !words.is_empty()).map(str::to_owned)
        })
    }

    /// True if there is visible text.
    pub fn has_text(&self) -> bool {
        self.0.blocks.iter().any(|b| matches!(b, Block::Text(t) if !t.text.is_empty()))
    }

    /// The tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.0.blocks.iter().filter_map(|b| match b {
            Block::ToolCall(c) => Some(c),
            _ => None,
        })
    }

    /// The calls of provider-hosted tools, in order.
    pub fn server_calls(&self) -> impl Iterator<Item = &ServerCall> {
        self.0.blocks.iter().filter_map(|b| match b {
            Block::Server(call) => Some(call),
            _ => None,
        })
    }

    /// The sources that the model cites, in order.
    ///
    /// ```
    /// use agent_core::{AssistantMessage, Block, Text, message::Citation};
    ///
    /// let mut text = Text::new("It is noon.");
    /// text.citations.push(Citation::of_url("https://time.example").with_title("Time"));
    /// let message = AssistantMessage::new(vec![Block::Text(text)]);
    /// assert_eq!(message.citations().next().and_then(|c| c.title.as_deref()), Some("Time"));
    /// ```
    pub fn citations(&self) -> impl Iterator<Item = &Citation> {
        let texts = self.0.blocks.iter().filter_map(|b| match b {
            Block::Text(t) => Some(&t.citations),
            _ => None,
        });
        texts.flatten()
    }

    /// True if the model requested at least one tool call.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// True if the message has content for the user: text, an image or a document. Reasoning alone
    /// does not count.
    pub fn has_content(&self) -> bool {
        self.has_text() || self.0.blocks.iter().any(|b| matches!(b, Block::Image(_) | Block::Document(_)))
    }

    /// True if there are no blocks: such a message must not be appended to a history, since
    /// providers reject it.
    pub fn is_empty(&self) -> bool {
        self.0.blocks.is_empty()
    }

    /// True if both share the same memory, and hence are equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for AssistantMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssistantMessage")
            .field("blocks", &self.0.blocks)
            .field("raw", &self.0.raw.is_some())
            .field("edited", &self.0.edited)
            .finish()
    }
}

impl From<&str> for AssistantMessage {
    fn from(text: &str) -> Self {
        Self::new(vec![Block::text(text)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Origin;

    #[test]
    fn editing_a_shared_message_leaves_the_other_owner_its_own() {
        let raw = Raw::parse(Origin::new("w", "p", "m"), r#"{"content":"a"}"#).expect("valid JSON");
        let kept = AssistantMessage::from_provider(vec![Block::text("a")], raw);
        let mut edited = kept.clone();
        edited.blocks_mut()[0] = Block::text("b");
        assert_eq!((kept.text(), kept.is_edited()), ("a".to_owned(), false));
        assert_eq!((edited.text(), edited.is_edited()), ("b".to_owned(), true));
        assert!(edited.raw().is_some(), "unknown fields are still there to be kept");
    }

    #[test]
    fn a_refusal_has_words_where_the_provider_tells_them() {
        let raw = Raw::parse(Origin::new("w", "p", "m"), r#"{"type":"refusal","refusal":"No."}"#).expect("valid JSON");
        let message = AssistantMessage::new(vec![Block::Other(raw)]);
        assert_eq!((message.refusal().as_deref(), message.text()), (Some("No."), String::new()));
        assert_eq!(AssistantMessage::from("Yes.").refusal(), None);
    }

    #[test]
    fn a_message_survives_json_with_its_raw_bytes() {
        let text = r#"{"content" : "a",  "x":1.50}"#;
        let raw = Raw::parse(Origin::new("w", "p", "m"), text).expect("valid JSON");
        let message = AssistantMessage::from_provider(vec![Block::text("a")], raw);
        let json = serde_json::to_string(&message).expect("serialises");
        let back: AssistantMessage = serde_json::from_str(&json).expect("parses");
        assert_eq!(back, message);
        assert_eq!(back.raw().expect("raw").json(), text);
    }
}
