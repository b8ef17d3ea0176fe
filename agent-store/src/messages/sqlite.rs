//! Chat store in one SQLite file.

use std::{fmt, path::Path};

use agent_core::{Error, ErrorKind, Result, async_trait};
use agent_retrieval::memory::{ChatMessage, ChatMessageStore, ChatQuery, RoundCounter, select_rounds};
use rusqlite::{OptionalExtension, Row};

use super::number;
use crate::database::{Database, from_json, to_json};

/// Chat store in one SQLite file, which may also hold a
/// [`SqliteMemoryStore`](crate::SqliteMemoryStore). Cheap to clone.
///
/// Does not store system messages unless [`keep_system`](Self::keep_system) is set. A query for the
/// newest rounds reads only those.
///
/// ```
/// use agent_core::Message;
/// use agent_retrieval::memory::{ChatMessageStore, ChatQuery};
/// use agent_store::SqliteChatMessageStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let store = SqliteChatMessageStore::open(dir.path().join("chats.db"))?;
/// store.write("ada", vec![Message::user("Hi.").into(), Message::assistant("Hello.").into()]).await?;
/// assert_eq!(store.retrieve("ada", &ChatQuery::default()).await?.len(), 2);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteChatMessageStore {
    database: Database,
    keep_system: bool,
}

impl SqliteChatMessageStore {
    /// Opens the store at `path`; creates the file and its directory if missing.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the file cannot be opened or is not
    /// such a store.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { database: Database::open(path.as_ref())?, keep_system: false })
    }

    /// Stores system messages too.
    #[must_use]
    pub fn keep_system(mut self) -> Self {
        self.keep_system = true;
        self
    }
}

#[async_trait]
impl ChatMessageStore for SqliteChatMessageStore {
    async fn write(&self, chat_id: &str, messages: Vec<ChatMessage>) -> Result<usize> {
        let (chat, keep_system) = (chat_id.to_owned(), self.keep_system);
        let write = self.database.run(move |tables| {
            let last = "SELECT round, open FROM chat_message WHERE chat = ?1 ORDER BY seq DESC LIMIT 1";
            let last = tables.query_row(last, [&chat], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).optional()?;
            let rounds = last.map(|(round, open)| RoundCounter::after(round.cast_unsigned(), open));
            let count = "SELECT count(*) FROM chat_message WHERE chat = ?1";
            let next: i64 = tables.query_row(count, [&chat], |row| row.get(0))?;
            let mut known = tables.prepare("SELECT 1 FROM chat_message WHERE chat = ?1 AND id = ?2")?;
            let is_known = |id: &str| known.exists((&chat, id));
            let new = number(messages, keep_system, next.cast_unsigned(), rounds.unwrap_or_default(), is_known)?;
            let insert = "INSERT INTO chat_message (chat, id, round, open, body) VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut insert = tables.prepare(insert)?;
            for message in &new {
                let body = to_json(&message.message)?;
                insert.execute((&chat, &message.id, message.round.cast_signed(), message.open, body))?;
            }
            Ok(new.len())
        });
        write.await
    }

    async fn retrieve(&self, chat_id: &str, query: &ChatQuery) -> Result<Vec<ChatMessage>> {
        let (chat, query) = (chat_id.to_owned(), query.clone());
        let read = self.database.run(move |tables| {
            let newest_first = "SELECT round, id, body FROM chat_message WHERE chat = ?1 ORDER BY seq DESC";
            let mut statement = tables.prepare(newest_first)?;
            let rows = statement.query_map([&chat], message)?;
            let failed = |e| Error::new(ErrorKind::Store, "a message of the chat cannot be read").with_source(e);
            Ok(select_rounds(rows.map(|row| row.map_err(failed)), &query))
        });
        read.await?
    }

    async fn count(&self, chat_id: &str) -> Result<usize> {
        let chat = chat_id.to_owned();
        let count = "SELECT count(*) FROM chat_message WHERE chat = ?1";
        let count = self.database.run(move |tables| tables.query_row(count, [&chat], |row| row.get::<_, i64>(0)));
        Ok(usize::try_from(count.await?).unwrap_or_default())
    }

    async fn delete(&self, chat_id: &str) -> Result<bool> {
        let chat = chat_id.to_owned();
        let delete = "DELETE FROM chat_message WHERE chat = ?1";
        self.database.run(move |tables| Ok(tables.execute(delete, [&chat])? > 0)).await
    }

    async fn delete_all(&self) -> Result<usize> {
        let delete = self.database.run(|tables| {
            let chats = "SELECT count(DISTINCT chat) FROM chat_message";
            let chats: i64 = tables.query_row(chats, (), |row| row.get(0))?;
            tables.execute("DELETE FROM chat_message", ())?;
            Ok(chats)
        });
        Ok(usize::try_from(delete.await?).unwrap_or_default())
    }
}

/// Decodes a row into a message and its round.
fn message(row: &Row<'_>) -> rusqlite::Result<(u64, ChatMessage)> {
    let (round, id): (i64, String) = (row.get(0)?, row.get(1)?);
    Ok((round.cast_unsigned(), ChatMessage::new(id, from_json(row.get_ref(2)?.as_str()?)?)))
}

impl fmt::Debug for SqliteChatMessageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteChatMessageStore").field("path", &self.database.path()).finish_non_exhaustive()
    }
}
