//! Store of conversations by chat id.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use agent_core::{error::Result, message::Message};

/// Store of conversations by chat id, for applications that keep conversations apart from runs. (A
/// run persists its conversation in its [`Journal`](agent_core::Journal).)
///
/// The conformance suite of `agent-store` (feature `testing`) checks an implementation.
#[async_trait]
pub trait ChatMessageStore: Send + Sync + 'static {
    /// Appends messages to a chat and returns the number of new ones. A message whose id is already
    /// in the chat is skipped; one without an id gets the next number. An implementation may drop
    /// system messages.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails; nothing is then written.
    async fn write(&self, chat_id: &str, messages: Vec<ChatMessage>) -> Result<usize>;

    /// Returns the messages of a chat that match `query`, oldest first, with their ids; an unknown
    /// chat is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn retrieve(&self, chat_id: &str, query: &ChatQuery) -> Result<Vec<ChatMessage>>;

    /// Returns the number of messages of a chat.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn count(&self, chat_id: &str) -> Result<usize>;

    /// Deletes a chat. Returns `true` if it existed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn delete(&self, chat_id: &str) -> Result<bool>;

    /// Deletes all chats. Returns their number.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn delete_all(&self) -> Result<usize>;
}

/// A message with its id in the chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Id of the message, unique in the chat; assigned by the store if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The message.
    pub message: Message,
}

impl ChatMessage {
    /// Creates a message with this id.
    pub fn new(id: impl Into<String>, message: Message) -> Self {
        Self { id: Some(id.into()), message }
    }
}

impl From<Message> for ChatMessage {
    fn from(message: Message) -> Self {
        Self { id: None, message }
    }
}

/// Filter for messages of a chat. Default: all.
///
/// A chat is returned in whole rounds, so that a call always comes with its results. A round
/// extends from a user message to the next answer without calls; a system message between two
/// rounds is a separate round.
///
/// ```
/// use agent_retrieval::memory::ChatQuery;
///
/// let newest = ChatQuery::default().last_k(10);
/// let about_bees = ChatQuery::default().containing("bees").last_k(3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChatQuery {
    /// Maximum number of rounds, counted from the newest and after the other filters. Default: all.
    pub last_k: Option<usize>,
    /// Only rounds that ended before the message with this id, for backward pagination. If there is
    /// no such message, nothing matches.
    pub before: Option<String>,
    /// Only rounds with a message whose text contains this, case-sensitively.
    pub containing: Option<String>,
}

impl ChatQuery {
    /// Restricts to the newest `k` rounds.
    #[must_use]
    pub fn last_k(mut self, k: usize) -> Self {
        self.last_k = Some(k);
        self
    }

    /// Restricts to rounds before the message with this id.
    #[must_use]
    pub fn before(mut self, id: impl Into<String>) -> Self {
        self.before = Some(id.into());
        self
    }

    /// Restricts to rounds that contain this text.
    #[must_use]
    pub fn containing(mut self, text: impl Into<String>) -> Self {
        self.containing = Some(text.into());
        self
    }
}
