//! [`MemoryArchive`].

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{Result, RunCx};
use async_trait::async_trait;

use super::{Archive, Archived, Hit, find, off_thread};

/// In-memory archive, which is lost with the process. Clones share it.
///
/// The texts of one agent in one session are bounded; the oldest are evicted first. All sessions
/// together are bounded too: the least recently used agent of a session is evicted first, with all
/// its texts.
///
/// ```
/// use agent_middleware::{ContextCompaction, archive::MemoryArchive};
///
/// let archive = MemoryArchive::new().agent_limit(4 << 20).total_limit(64 << 20);
/// let compaction = ContextCompaction::builder().archive(archive).build()?;
/// # drop(compaction);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct MemoryArchive {
    agent_limit: usize,
    total_limit: usize,
    shelves: Arc<Mutex<Shelves>>,
}

/// Owner of texts: a session and an agent.
type Owner = (Arc<str>, Arc<str>);

#[derive(Default)]
struct Shelves {
    by_owner: HashMap<Owner, Shelf>,
    /// Owners ordered by last use.
    order: BTreeMap<u64, Owner>,
    uses: u64,
    bytes: usize,
}

#[derive(Default)]
struct Shelf {
    used: u64,
    bytes: usize,
    /// Oldest first.
    texts: VecDeque<Arc<Archived>>,
}

impl MemoryArchive {
    /// Creates an empty archive: 16 MiB for each agent of each session, 256 MiB in total.
    pub fn new() -> Self {
        Self { agent_limit: 16 << 20, total_limit: 256 << 20, shelves: Arc::default() }
    }

    /// Sets the limit for each agent of each session, in bytes. Default: 16 MiB.
    #[must_use]
    pub fn agent_limit(mut self, bytes: usize) -> Self {
        self.agent_limit = bytes;
        self
    }

    /// Sets the limit for all sessions together, in bytes. Default: 256 MiB.
    #[must_use]
    pub fn total_limit(mut self, bytes: usize) -> Self {
        self.total_limit = bytes;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelves {
    /// Returns the owner's shelf, if there is one, and marks it as the most recently used.
    fn used(&mut self, owner: &Owner) -> Option<&mut Shelf> {
        let shelf = self.by_owner.get_mut(owner)?;
        self.uses += 1;
        self.order.remove(&shelf.used);
        self.order.insert(self.uses, owner.clone());
        shelf.used = self.uses;
        Some(shelf)
    }

    fn put(&mut self, owner: &Owner, texts: Vec<Archived>, most: usize) {
        if texts.is_empty() {
            return;
        }
        self.by_owner.entry(owner.clone()).or_default();
        let Some(shelf) = self.used(owner) else { return };
        let before = shelf.bytes;
        shelf.put(texts, most);
        let after = shelf.bytes;
        self.bytes = self.bytes - before + after;
    }

    fn remove_oldest(&mut self) -> Option<()> {
        let (_, owner) = self.order.pop_first()?;
        self.bytes -= self.by_owner.remove(&owner)?.bytes;
        Some(())
    }
}

impl Shelf {
    fn put(&mut self, texts: Vec<Archived>, most: usize) {
        for text in texts {
            if self.texts.iter().all(|known| known.handle != text.handle) {
                self.bytes += text.size();
                self.texts.push_back(Arc::new(text));
            }
        }
        while self.bytes > most
            && let Some(oldest) = self.texts.pop_front()
        {
            self.bytes -= oldest.size();
        }
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
        shelves.put(&owner(cx), texts, self.agent_limit);
        while shelves.bytes > self.total_limit && shelves.remove_oldest().is_some() {}
        Ok(())
    }

    async fn get(&self, cx: &RunCx, handle: &str) -> Result<Option<Archived>> {
        let found = {
            let mut shelves = self.lock();
            let shelf = shelves.used(&owner(cx));
            shelf.and_then(|shelf| shelf.texts.iter().find(|text| text.handle == handle).cloned())
        };
        Ok(found.map(Arc::unwrap_or_clone))
    }

    async fn search(&self, cx: &RunCx, query: &str, most: usize) -> Result<Vec<Hit>> {
        let texts = self.lock().used(&owner(cx)).map(|shelf| shelf.texts.clone()).unwrap_or_default();
        let query = query.to_owned();
        off_thread(move || find(&query, most, texts.iter().map(|text| &**text))).await
    }
}

impl fmt::Debug for MemoryArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shelves = self.lock();
        f.debug_struct("MemoryArchive")
            .field("agent_limit", &self.agent_limit)
            .field("total_limit", &self.total_limit)
            .field("agents", &shelves.by_owner.len())
            .field("bytes", &shelves.bytes)
            .finish()
    }
}
