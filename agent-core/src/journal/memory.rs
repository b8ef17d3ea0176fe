//! An in-memory journal.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    future::ready,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures::future::BoxFuture;

use super::{Ack, Entry, Journal, JournalWriter, SessionInfo, SharedIndex};
use crate::error::{Error, ErrorKind, Result};

/// In-memory journal, lost with the process. Agents without a store use one per run.
///
/// Entries are stored without serialisation. Cheap to clone; all clones share the same data.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Maximum number of entries kept per session; unlimited if `None`.
    most: Option<usize>,
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    logs: BTreeMap<Arc<str>, Log>,
    held: HashSet<(Arc<str>, Arc<str>)>,
}

/// The newest entries of a session, and the index of all its entries.
#[derive(Debug, Default)]
struct Log {
    kept: VecDeque<Entry>,
    /// Number of entries appended so far.
    entries: u64,
    /// Index of the entries up to the last one that it applied. Later entries are applied on
    /// demand.
    index: SharedIndex,
}

impl Log {
    fn append(&mut self, batch: Vec<Entry>, most: Option<usize>) -> u64 {
        let first = self.entries + 1;
        for entry in batch {
            self.entries += 1;
            self.kept.push_back(Entry { seq: self.entries, ..entry });
        }
        while most.is_some_and(|most| self.kept.len() > most)
            && let Some(oldest) = self.kept.pop_front()
        {
            let mut index = self.index.lock();
            if index.seq() < oldest.seq {
                index.apply(&oldest);
            }
        }
        first
    }

    fn index(&self) -> SharedIndex {
        let seq = self.index.look(super::SessionIndex::seq);
        let mut index = self.index.lock();
        self.after(seq).for_each(|entry| index.apply(entry));
        self.index.clone()
    }

    fn after(&self, seq: u64) -> impl Iterator<Item = &Entry> {
        self.kept.range(self.kept.partition_point(|entry| entry.seq <= seq)..)
    }
}

impl MemoryJournal {
    /// Creates a journal that keeps at most the `most` newest entries of each session: a buffer for
    /// event readers that fall behind. The index still includes the entries that were dropped.
    pub fn bounded(most: usize) -> Self {
        Self(Arc::new(Inner { most: Some(most), ..Inner::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`Journal::open`], but synchronous.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if another writer holds the (session, agent) pair.
    pub fn open_now(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        let key: (Arc<str>, Arc<str>) = (session.into(), agent.into());
        if !self.lock().held.insert(key.clone()) {
            return Err(Error::new(ErrorKind::Busy, format!("agent '{agent}' already runs in session '{session}'")));
        }
        Ok(Arc::new(Writer { journal: self.clone(), key }))
    }
}

struct Writer {
    journal: MemoryJournal,
    key: (Arc<str>, Arc<str>),
}

impl JournalWriter for Writer {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let mut sessions = self.journal.lock();
        let log = match sessions.logs.get_mut(&self.key.0) {
            Some(log) => log,
            None => sessions.logs.entry(self.key.0.clone()).or_default(),
        };
        Ack::Done(Some(Ok(log.append(entries, self.journal.0.most))))
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(ready(Ok(())))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.journal.lock().held.remove(&self.key);
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        self.open_now(session, agent)
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        let sessions = self.lock();
        let log = sessions.logs.get(session);
        Ok(log.map(|log| log.after(after).take(limit).cloned().map(Arc::new).collect()).unwrap_or_default())
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        Ok(self.lock().logs.keys().map(ToString::to_string).collect())
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        Ok(self.lock().logs.get(session).and_then(|log| log.kept.back().cloned()).map(Arc::new))
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        Ok(self
            .lock()
            .logs
            .get(session)
            .filter(|log| log.entries > 0)
            .map(|log| log.index().look(|index| index.info().clone())))
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        Ok(self.lock().logs.get(session).map(Log::index).unwrap_or_default())
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let sessions = self.lock();
        let from = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let names = sessions.logs.range::<str, _>((from, Bound::Unbounded)).map(|(name, _)| &**name);
        Ok(names.take_while(|name| name.starts_with(prefix)).take(limit).map(str::to_owned).collect())
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        let mut sessions = self.lock();
        if sessions.held.iter().any(|(s, _)| &**s == session) {
            return Err(Error::new(ErrorKind::Busy, format!("session '{session}' is in use")));
        }
        Ok(sessions.logs.remove(session).is_some())
    }
}
