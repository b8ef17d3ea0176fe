//! [`MemoryArchive`].

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Result, RunCx};
use async_trait::async_trait;

use super::{Archive, Archived, Hit, find};

/// What one agent of one session may have in it, in bytes.
const LIMIT: usize = 16 << 20;

/// An archive in the process: gone when that ends. Clones share it.
///
/// What one agent of one session put in is bounded; the oldest goes first.
#[derive(Clone)]
pub struct MemoryArchive(Arc<Inner>);

struct Inner {
    limit: usize,
    shelves: Mutex<HashMap<Owner, Shelf>>,
}

type Owner = (Arc<str>, Arc<str>);

#[derive(Default)]
struct Shelf {
    bytes: usize,
    texts: VecDeque<Archived>,
}

impl MemoryArchive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::with_limit(LIMIT)
    }

    /// An empty archive that keeps so many bytes of text and of inline images and documents for each agent of each session.
    /// Default: 16 MiB.
    pub fn with_limit(bytes: usize) -> Self {
        Self(Arc::new(Inner { limit: bytes, shelves: Mutex::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, Shelf>> {
        self.0.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn owner(cx: &RunCx) -> Owner {
    (cx.ids().session.clone(), cx.ids().agent_id.clone())
}

impl Default for MemoryArchive {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Archive for MemoryArchive {
    async fn put(&self, cx: &RunCx, texts: Vec<Archived>) -> Result<()> {
        let mut shelves = self.lock();
        let shelf = shelves.entry(owner(cx)).or_default();
        for text in texts {
            if shelf.texts.iter().all(|known| known.handle != text.handle) {
                shelf.bytes += text.size();
                shelf.texts.push_back(text);
            }
        }
        while shelf.bytes > self.0.limit
            && let Some(oldest) = shelf.texts.pop_front()
        {
            shelf.bytes -= oldest.size();
        }
        Ok(())
    }

    async fn get(&self, cx: &RunCx, handle: &str) -> Result<Option<Archived>> {
        let shelves = self.lock();
        let found = shelves.get(&owner(cx)).and_then(|shelf| shelf.texts.iter().find(|text| text.handle == handle));
        Ok(found.cloned())
    }

    async fn search(&self, cx: &RunCx, query: &str, most: usize) -> Result<Vec<Hit>> {
        let shelves = self.lock();
        let texts = shelves.get(&owner(cx)).into_iter().flat_map(|shelf| &shelf.texts);
        Ok(find(query, most, texts))
    }
}

impl fmt::Debug for MemoryArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryArchive").field("limit", &self.0.limit).finish_non_exhaustive()
    }
}
