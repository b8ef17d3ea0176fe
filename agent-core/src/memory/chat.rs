//! Conversations by chat id.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{error::Result, message::Message};

/// Keeps conversations by chat id, for applications that keep them apart from runs. (What a run keeps is in its
/// [`Journal`](crate::Journal).)
///
/// The conformance suite of `agent-store` (feature `testing`) tells whether an implementation does what is said here.
#[async_trait]
pub trait ChatMessageStore: Send + Sync + 'static {
    /// Appends messages to a chat and tells how many are new. A message whose id is in the chat already is passed over; one
    /// without an id gets the next number. An implementation may leave system messages out.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails; nothing is then written.
    async fn write(&self, chat_id: &str, messages: Vec<ChatMessage>) -> Result<usize>;

    /// The messages of a chat that `query` asks for, oldest first, with their ids; an unknown chat is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn retrieve(&self, chat_id: &str, query: &ChatQuery) -> Result<Vec<ChatMessage>>;

    /// How many messages a chat has.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn count(&self, chat_id: &str) -> Result<usize>;

    /// Deletes a chat; true if there was one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn delete(&self, chat_id: &str) -> Result<bool>;

    /// Deletes all chats, and tells how many there were.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn delete_all(&self) -> Result<usize>;
}

/// A message with the id that it has in its chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Unique in the chat; given by the store if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The message.
    pub message: Message,
}

impl ChatMessage {
    /// A message of this id.
    pub fn new(id: impl Into<String>, message: Message) -> Self {
        Self { id: Some(id.into()), message }
    }
}

impl From<Message> for ChatMessage {
    fn from(message: Message) -> Self {
        Self { id: None, message }
    }
}

/// Which messages of a chat are wanted. All by default.
///
/// A chat is asked for in whole rounds, so that a call is never without its results. A round is what a user says up to the
/// answer without calls that ends it; a system message between two rounds is one of its own.
///
/// ```
/// use agent_core::memory::ChatQuery;
///
/// let newest = ChatQuery::default().last_k(10);
/// let about_bees = ChatQuery::default().containing("bees").last_k(3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChatQuery {
    /// The newest rounds that are wanted, after the other filters; all if unset.
    pub last_k: Option<usize>,
    /// Only rounds that ended before the message of this id: for paging backwards. None if there is no such
    /// message.
    pub before: Option<String>,
    /// Only rounds with a message whose text holds this, letter by letter.
    pub containing: Option<String>,
}

impl ChatQuery {
    /// Asks for the newest `k` rounds only.
    #[must_use]
    pub fn last_k(mut self, k: usize) -> Self {
        self.last_k = Some(k);
        self
    }

    /// Asks for rounds before the message of this id only.
    #[must_use]
    pub fn before(mut self, id: impl Into<String>) -> Self {
        self.before = Some(id.into());
        self
    }

    /// Asks for rounds with this text only.
    #[must_use]
    pub fn containing(mut self, text: impl Into<String>) -> Self {
        self.containing = Some(text.into());
        self
    }
}
