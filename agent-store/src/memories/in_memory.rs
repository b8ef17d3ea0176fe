//! In-memory memory store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Result, async_trait, run::new_id};
use agent_retrieval::{
    memory::{Memory, MemoryQuery, MemoryStore, ScoredMemory},
    search::{Bm25, words},
};
use serde_json::{Map, Value};

/// In-memory memory store: lost with the process, and searched exhaustively with BM25. Cheap to
/// clone; clones share one store.
///
/// ```
/// use agent_retrieval::memory::{Memory, MemoryQuery, MemoryStore};
/// use agent_store::InMemoryMemoryStore;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = InMemoryMemoryStore::default();
/// store.add("ada", vec![Memory::new("Ada keeps bees."), Memory::new("Ada is allergic to nuts.")]).await?;
/// let found = store.search("ada", &MemoryQuery::new("Which nuts may she eat?")).await?;
/// assert_eq!(found[0].memory.text, "Ada is allergic to nuts.");
/// assert!(store.search("bob", &MemoryQuery::new("nuts")).await?.is_empty());
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemoryMemoryStore(Arc<Mutex<BTreeMap<String, Vec<Memory>>>>);

impl InMemoryMemoryStore {
    fn users(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Memory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl MemoryStore for InMemoryMemoryStore {
    async fn add(&self, user: &str, memories: Vec<Memory>) -> Result<Vec<String>> {
        let mut users = self.users();
        let kept = users.entry(user.to_owned()).or_default();
        let add = |mut memory: Memory| {
            let id = memory.id.get_or_insert_with(new_id).clone();
            kept.retain(|other| other.id != memory.id);
            kept.push(memory);
            id
        };
        Ok(memories.into_iter().map(add).collect())
    }

    async fn search(&self, user: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>> {
        let users = self.users();
        let memories = users.get(user).map(Vec::as_slice).unwrap_or_default();
        let newest: Vec<&Memory> = memories.iter().rev().collect(); // the ranking keeps this order among equal scores
        let terms: BTreeSet<_> = words(&query.text).into_iter().collect();
        let ranked = match terms.is_empty() {
            true => (0..newest.len()).map(|at| (at, 0.0)).collect(),
            false => {
                let terms = terms.iter().map(|term| (term.as_str(), 1.0));
                Bm25::new(newest.iter().map(|memory| words(&memory.text))).rank(terms)
            }
        };
        let found = ranked.into_iter().map(|(at, score)| (newest[at], score)).filter(|(m, _)| query.admits(m));
        Ok(found.take(query.top_k).map(|(memory, score)| ScoredMemory::new(memory.clone(), score)).collect())
    }

    async fn update(&self, user: &str, id: &str, text: &str, metadata: Map<String, Value>) -> Result<bool> {
        let mut users = self.users();
        let found = users.get_mut(user).and_then(|kept| kept.iter_mut().find(|m| m.id.as_deref() == Some(id)));
        Ok(found.map(|memory| (memory.text, memory.metadata) = (text.to_owned(), metadata)).is_some())
    }

    async fn delete(&self, user: &str, id: &str) -> Result<bool> {
        let mut users = self.users();
        let Some(kept) = users.get_mut(user) else { return Ok(false) };
        let before = kept.len();
        kept.retain(|memory| memory.id.as_deref() != Some(id));
        Ok(kept.len() < before)
    }

    async fn delete_all(&self, user: &str) -> Result<usize> {
        Ok(self.users().remove(user).map_or(0, |kept| kept.len()))
    }
}
