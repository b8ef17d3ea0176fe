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
    /// A document that the model made; sound too.
    Document(Media),
    /// What a tool did that runs at the provider.
    Server(ServerCall),
    /// Content that this framework does not interpret (a refusal, say). It goes back to the
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

/// What a tool did that runs at the provider: a web search, a program, a call of a remote server. It goes back to the
/// provider that sent it as its `raw` JSON, unchanged and in place; no other provider is shown it.
///
/// Some providers tell the call and its result in one piece, others in two that have the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerCall {
    /// Ties a call and its result together; empty if the provider names neither.
    pub id: Arc<str>,
    /// The tool, as the provider calls it.
    pub name: Arc<str>,
    /// The remote server whose tool it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What the tool was called with, as JSON or as the program that ran; none for a result alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What came of it, as JSON or as text; none for a call alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// The provider's own JSON.
    pub raw: Raw,
}

impl ServerCall {
    /// A call of which only the provider's JSON, its id and its tool are known.
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, raw: Raw) -> Self {
        Self { id: id.into(), name: name.into(), server: None, input: None, output: None, failed: false, raw }
    }
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
