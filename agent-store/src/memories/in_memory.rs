//! Memories in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Memory, MemoryQuery, MemoryStore, Result, ScoredMemory, async_trait, new_id};
use serde_json::{Map, Value};

use super::words;

/// Memories in memory: gone with the process, and searched one by one with BM25. Cheap to clone; all clones are one store.
///
/// ```
/// use agent_core::{Memory, MemoryQuery, MemoryStore};
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
        let terms: BTreeSet<_> = words(&query.text).collect();
        let scores = match terms.is_empty() {
            true => vec![None; memories.len()],
            false => bm25(memories, &terms),
        };
        // Newest first; the sort below keeps that order among equals.
        let scored = memories.iter().zip(scores).rev();
        let fits = scored.filter(|(memory, score)| (terms.is_empty() || score.is_some()) && query.admits(memory));
        let mut found: Vec<_> = fits.map(|(m, score)| ScoredMemory::new(m.clone(), score.unwrap_or(0.0))).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(query.top_k);
        Ok(found)
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

/// How well each memory fits, by Okapi BM25 with the usual k1 = 1.2 and b = 0.75; `None` for those without any of the terms.
fn bm25(memories: &[Memory], terms: &BTreeSet<String>) -> Vec<Option<f64>> {
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    /// The least that a term counts, however common it is.
    const LEAST: f64 = 1e-6;
    let texts: Vec<Vec<String>> = memories.iter().map(|memory| words(&memory.text).collect()).collect();
    let count = |n: usize| n as f64;
    let average = (count(texts.iter().map(Vec::len).sum()) / count(texts.len().max(1))).max(1.0);
    let mut scores = vec![None; texts.len()];
    for term in terms {
        let frequencies: Vec<_> = texts.iter().map(|text| text.iter().filter(|word| *word == term).count()).collect();
        let having = count(frequencies.iter().filter(|n| **n > 0).count());
        let rarity = ((count(texts.len()) - having + 0.5) / (having + 0.5)).ln().max(LEAST);
        for ((score, text), frequency) in scores.iter_mut().zip(&texts).zip(frequencies) {
            if frequency > 0 {
                let (frequency, length) = (count(frequency), count(text.len()) / average);
                let fit = rarity * frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length));
                *score = Some(score.unwrap_or(0.0) + fit);
            }
        }
    }
    scores
}
