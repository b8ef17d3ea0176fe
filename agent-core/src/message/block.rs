//! What models say: [`Block`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Media, Raw, Text};

/// One ordered piece of an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text for the user.
    Text(Text),
    /// The model's thinking.
    Reasoning(Reasoning),
    /// A request to run a tool.
    ToolCall(ToolCall),
    /// An image that the model made.
    Image(Media),
    /// A document that the model made.
    Document(Media),
    /// Content that this framework does not interpret (a server-side tool's result, a refusal). It goes back to the
    /// provider that sent it, unchanged and in place.
    Other(Raw),
}

/// The model's thinking, with what its provider needs to accept it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reasoning {
    /// The readable part; may be empty.
    pub text: String,
    /// The provider's proof that it wrote this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Thinking that only the provider can read (encrypted or redacted).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<String>,
    /// The provider's own JSON of this block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// A request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call; its result carries the same id. Unique within one message.
    pub id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// The arguments exactly as the model wrote them: JSON text, and not always valid.
    pub arguments: String,
    /// The provider's own JSON of this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }

    /// A call; `arguments` is JSON text.
    pub fn tool_call(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, arguments: impl Into<String>) -> Self {
        Self::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), raw: None })
    }

    /// Readable reasoning.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(Reasoning { text: text.into(), ..Reasoning::default() })
    }
}
