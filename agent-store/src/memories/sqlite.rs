//! Memory store in one SQLite file.

use std::{collections::BTreeSet, fmt, path::Path};

use agent_core::{Result, async_trait, run::new_id};
use agent_retrieval::{
    memory::{Memory, MemoryQuery, MemoryStore, ScoredMemory},
    search::words,
};
use rusqlite::{Row, ToSql};
use serde_json::{Map, Value};

use crate::database::{Database, from_json, to_json};

/// Memory store in one SQLite file, searched with SQLite's FTS5 index and BM25 ranking. Cheap to
/// clone. A [`SqliteChatMessageStore`](crate::SqliteChatMessageStore) may share the file.
///
/// Term rarity is computed over the memories of all users.
///
/// ```
/// use agent_retrieval::memory::{Filter, Memory, MemoryQuery, MemoryStore};
/// use agent_store::SqliteMemoryStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let store = SqliteMemoryStore::open(dir.path().join("memories.db"))?;
/// store.add("ada", vec![Memory::new("Ada keeps bees.").with("topic", "garden")]).await?;
/// let query = MemoryQuery::new("bees").filter(Filter::eq("topic", "garden"));
/// assert_eq!(store.search("ada", &query).await?.len(), 1);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteMemoryStore(Database);

impl SqliteMemoryStore {
    /// Opens the store at `path`; creates the file and its directory if missing.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the file cannot be opened or is not
    /// such a store.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self(Database::open(path.as_ref())?))
    }

    async fn change(&self, sql: &'static str, parameters: Vec<String>) -> Result<usize> {
        let change = self.0.run(move |tables| {
            let parameters: Vec<&dyn ToSql> = parameters.iter().map(|p| p as &dyn ToSql).collect();
            tables.execute(sql, &*parameters)
        });
        change.await
    }
}

#[async_trait]
impl MemoryStore for SqliteMemoryStore {
    async fn add(&self, user: &str, memories: Vec<Memory>) -> Result<Vec<String>> {
        let user = user.to_owned();
        let add = self.0.run(move |tables| {
            let mut replaced = tables.prepare("DELETE FROM memory WHERE user = ?1 AND id = ?2")?;
            let insert = "INSERT INTO memory (user, id, text, metadata) VALUES (?1, ?2, ?3, ?4)";
            let mut insert = tables.prepare(insert)?;
            let add = |memory: Memory| {
                let id = memory.id.unwrap_or_else(new_id);
                replaced.execute((&user, &id))?;
                insert.execute((&user, &id, &memory.text, to_json(&memory.metadata)?))?;
                Ok(id)
            };
            memories.into_iter().map(add).collect()
        });
        add.await
    }

    async fn search(&self, user: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>> {
        let (user, query) = (user.to_owned(), query.clone());
        let search = self.0.run(move |tables| {
            let terms: BTreeSet<_> = words(&query.text).into_iter().map(|word| format!("\"{word}\"")).collect();
            let terms = terms.into_iter().collect::<Vec<_>>().join(" OR ");
            let newest = "SELECT id, text, metadata, 0.0 FROM memory WHERE user = ?1 AND ?2 = '' ORDER BY seq DESC";
            let best = "SELECT id, memory.text, metadata, -bm25(memory_words) AS score
                        FROM memory_words JOIN memory ON memory.seq = memory_words.rowid
                        WHERE memory_words MATCH ?2 AND user = ?1 ORDER BY score DESC, seq DESC";
            let mut statement = tables.prepare(if terms.is_empty() { newest } else { best })?;
            let mut found = Vec::new();
            for memory in statement.query_map((&user, &terms), scored)? {
                if found.len() == query.top_k {
                    break;
                }
                let memory = memory?;
                if query.admits(&memory.memory) {
                    found.push(memory);
                }
            }
            Ok(found)
        });
        search.await
    }

    async fn update(&self, user: &str, id: &str, text: &str, metadata: Map<String, Value>) -> Result<bool> {
        let sql = "UPDATE memory SET text = ?3, metadata = ?4 WHERE user = ?1 AND id = ?2";
        let metadata = Value::Object(metadata).to_string();
        Ok(self.change(sql, vec![user.to_owned(), id.to_owned(), text.to_owned(), metadata]).await? > 0)
    }

    async fn delete(&self, user: &str, id: &str) -> Result<bool> {
        let sql = "DELETE FROM memory WHERE user = ?1 AND id = ?2";
        Ok(self.change(sql, vec![user.to_owned(), id.to_owned()]).await? > 0)
    }

    async fn delete_all(&self, user: &str) -> Result<usize> {
        self.change("DELETE FROM memory WHERE user = ?1", vec![user.to_owned()]).await
    }
}

fn scored(row: &Row<'_>) -> rusqlite::Result<ScoredMemory> {
    let mut memory = Memory::new(row.get::<_, String>(1)?).with_id(row.get::<_, String>(0)?);
    memory.metadata = from_json(row.get_ref(2)?.as_str()?)?;
    Ok(ScoredMemory::new(memory, row.get(3)?))
}

impl fmt::Debug for SqliteMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteMemoryStore").field("path", &self.0.path()).finish_non_exhaustive()
    }
}
