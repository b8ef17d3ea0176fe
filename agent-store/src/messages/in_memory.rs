//! In-memory chat store.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Error, Result, async_trait};
use agent_retrieval::memory::{ChatMessage, ChatMessageStore, ChatQuery, RoundCounter, select_rounds};

use super::number;

/// In-memory chat store: lost with the process. Cheap to clone; clones share one store.
///
/// Does not store system messages unless [`keep_system`](Self::keep_system) is set.
///
/// ```
/// use agent_core::Message;
/// use agent_retrieval::memory::{ChatMessageStore, ChatQuery};
/// use agent_store::InMemoryChatMessageStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = InMemoryChatMessageStore::default();
/// let said = [Message::user("Hi."), Message::assistant("Hello."), Message::user("Bye."), Message::assistant("Bye.")];
/// assert_eq!(store.write("ada", said.map(Into::into).to_vec()).await?, 4);
/// let newest = store.retrieve("ada", &ChatQuery::default().last_k(1)).await?;
/// assert_eq!(newest[0].message.text(), "Bye.");
/// assert_eq!(store.write("ada", newest).await?, 0, "they are there already");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemoryChatMessageStore {
    chats: Arc<Mutex<BTreeMap<String, Chat>>>,
    keep_system: bool,
}

#[derive(Debug, Default)]
struct Chat {
    /// Messages with their rounds.
    messages: Vec<(u64, ChatMessage)>,
    ids: HashSet<String>,
    rounds: RoundCounter,
}

impl InMemoryChatMessageStore {
    /// Stores system messages too.
    #[must_use]
    pub fn keep_system(mut self) -> Self {
        self.keep_system = true;
        self
    }

    fn chats(&self) -> MutexGuard<'_, BTreeMap<String, Chat>> {
        self.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatMessageStore for InMemoryChatMessageStore {
    async fn write(&self, chat_id: &str, messages: Vec<ChatMessage>) -> Result<usize> {
        let mut chats = self.chats();
        let known = chats.get(chat_id);
        let next = known.map_or(0, |chat| chat.messages.len() as u64);
        let rounds = known.map_or_else(RoundCounter::default, |chat| chat.rounds);
        let is_known = |id: &str| Ok::<_, Error>(known.is_some_and(|chat| chat.ids.contains(id)));
        let new = number(messages, self.keep_system, next, rounds, is_known)?;
        let count = new.len();
        if count > 0 {
            let chat = chats.entry(chat_id.to_owned()).or_default();
            for message in new {
                chat.rounds = RoundCounter::after(message.round, message.open);
                chat.ids.insert(message.id.clone());
                chat.messages.push((message.round, ChatMessage::new(message.id, message.message)));
            }
        }
        Ok(count)
    }

    async fn retrieve(&self, chat_id: &str, query: &ChatQuery) -> Result<Vec<ChatMessage>> {
        let chats = self.chats();
        let messages = chats.get(chat_id).map(|chat| chat.messages.as_slice()).unwrap_or_default();
        select_rounds(messages.iter().rev().cloned().map(Ok), query)
    }

    async fn count(&self, chat_id: &str) -> Result<usize> {
        Ok(self.chats().get(chat_id).map_or(0, |chat| chat.messages.len()))
    }

    async fn delete(&self, chat_id: &str) -> Result<bool> {
        Ok(self.chats().remove(chat_id).is_some())
    }

    async fn delete_all(&self) -> Result<usize> {
        Ok(std::mem::take(&mut *self.chats()).len())
    }
}
