//! Messages: well-formed by construction.
//!
//! The types determine which role may contain what: only an [`AssistantMessage`] contains tool
//! calls, and a result ([`ToolMessage`]) always names the call that it answers. All messages are
//! cheap to clone, because their content is shared. Model authors also need [`Raw`] and [`Origin`],
//! which preserve a provider's JSON.
//!
//! ```
//! use agent_core::message::{AssistantMessage, Block, ToolMessage};
//!
//! let asks = AssistantMessage::new(vec![Block::text("Let me look."), Block::tool_call("c1", "clock", "{}")]);
//! assert!(asks.has_calls());
//! let answer = ToolMessage::text("c1", "clock", "12:00", false);
//! assert_eq!(answer.call_id(), "c1");
//! ```

mod assistant;
mod block;
mod part;
mod raw;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

pub(crate) use self::part::join_text;
pub use self::{
    assistant::AssistantMessage,
    block::{Block, Reasoning, ServerCall, ToolCall},
    part::{Cache, Citation, Media, MediaSource, Part, SourcePlace, Text},
    raw::{Origin, Raw},
};

/// One message of a conversation.
///
/// ```
/// use agent_core::{AssistantMessage, Block, Message};
///
/// let question = Message::user("What is 6 x 7?");
/// let answer = Message::Assistant(AssistantMessage::new(vec![Block::text("42")]));
/// assert_eq!(question.text(), "What is 6 x 7?");
/// assert_eq!(answer.text(), "42");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Instructions inside the conversation. (An agent's system prompt is not a message: see
    /// [`ModelRequest::system`](crate::ModelRequest).)
    System(SystemMessage),
    /// Message of the user, or of the program on the user's behalf.
    User(UserMessage),
    /// Message of the model.
    Assistant(AssistantMessage),
    /// Result of one tool call.
    Tool(ToolMessage),
}

/// Methods shared by all messages that consist of parts.
macro_rules! parts_methods {
    () => {
        /// Sets a provider's JSON of the message, which is sent back to that provider unchanged.
        #[must_use]
        pub fn with_raw(mut self, raw: Raw) -> Self {
            self.raw = Some(raw);
            self
        }

        /// The provider's JSON of the whole message, if the message was read from it and has not
        /// been edited since.
        pub fn raw(&self) -> Option<&Raw> {
            self.raw.as_ref()
        }

        /// The content, in order.
        pub fn parts(&self) -> &[Part] {
            &self.parts
        }

        /// The content, mutable; shared content is copied first, and the provider's JSON is
        /// dropped.
        pub fn parts_mut(&mut self) -> &mut Vec<Part> {
            self.raw = None;
            Arc::make_mut(&mut self.parts)
        }
    };
}

macro_rules! parts_message {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            parts: Arc<Vec<Part>>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            raw: Option<Raw>,
        }

        impl $name {
            /// Creates a message from parts.
            pub fn new(parts: Vec<Part>) -> Self {
                Self { parts: Arc::new(parts), raw: None }
            }

            parts_methods!();

            /// The text parts, joined by line breaks.
            pub fn text(&self) -> String {
                part::join_text(&self.parts)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.parts).finish()
            }
        }
    };
}

parts_message!(
    /// Instructions inside the conversation.
    SystemMessage
);
parts_message!(
    /// Message of the user.
    UserMessage
);

/// Result of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolMessage {
    call_id: Arc<str>,
    name: Arc<str>,
    parts: Arc<Vec<Part>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Raw>,
}

impl ToolMessage {
    /// Creates the result of the call `call_id` of the tool `name`.
    pub fn new(call_id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, parts: Arc<Vec<Part>>, is_error: bool) -> Self {
        Self { call_id: call_id.into(), name: name.into(), parts, is_error, raw: None }
    }

    /// Creates a text result.
    pub fn text(
        call_id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        text: impl Into<String>,
        is_error: bool,
    ) -> Self {
        Self::new(call_id, name, Arc::new(vec![Part::text(text)]), is_error)
    }

    parts_methods!();

    /// Id of the answered call.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Name of the called tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the call failed, was denied or never ran.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Changes the call id, for rewriting duplicate ids.
    #[must_use]
    pub fn with_call_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.call_id = id.into();
        self.raw = None;
        self
    }
}

impl Message {
    /// Creates a user message from a text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(UserMessage::new(vec![Part::text(text)]))
    }

    /// Creates a system message from a text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System(SystemMessage::new(vec![Part::text(text)]))
    }

    /// Creates an assistant message from a text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant(AssistantMessage::new(vec![Block::text(text)]))
    }

    /// The visible text: text parts and blocks, joined by line breaks; reasoning is omitted.
    pub fn text(&self) -> String {
        match self {
            Self::System(m) => m.text(),
            Self::User(m) => m.text(),
            Self::Assistant(m) => m.text(),
            Self::Tool(m) => part::join_text(&m.parts),
        }
    }

    /// `system`, `user`, `assistant` or `tool`.
    pub fn role(&self) -> &'static str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::Tool(_) => "tool",
        }
    }

    /// The assistant message, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(m) => Some(m),
            _ => None,
        }
    }

    /// The tool result, if it is one.
    pub fn as_tool(&self) -> Option<&ToolMessage> {
        match self {
            Self::Tool(m) => Some(m),
            _ => None,
        }
    }
}
