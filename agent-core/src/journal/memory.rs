//! A journal in memory.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{Ack, Entry, Journal, JournalWriter};
use crate::{Error, ErrorKind, Result};

/// Sessions in memory: gone with the process. What agents without a store use, one for each run.
///
/// Entries are shared, not copied or serialised. Cheap to clone; every clone is the same journal.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    sessions: BTreeMap<Arc<str>, Vec<Arc<Entry>>>,
    held: HashSet<(Arc<str>, Arc<str>)>,
}

impl MemoryJournal {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Journal::open`], at once.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if another writer holds it.
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
        let mut inner = self.journal.lock();
        let log = match inner.sessions.get_mut(&self.key.0) {
            Some(log) => log,
            None => inner.sessions.entry(self.key.0.clone()).or_default(),
        };
        let first = log.len() as u64 + 1;
        log.extend((first..).zip(entries).map(|(seq, entry)| Arc::new(Entry { seq, ..entry })));
        Ack::Done(Some(Ok(first)))
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
        let inner = self.lock();
        let log = inner.sessions.get(session).map(Vec::as_slice).unwrap_or_default();
        let from = usize::try_from(after).unwrap_or(usize::MAX).min(log.len());
        Ok(log[from..].iter().take(limit).cloned().collect())
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        Ok(self.lock().sessions.keys().map(ToString::to_string).collect())
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        let mut inner = self.lock();
        if inner.held.iter().any(|(s, _)| &**s == session) {
            return Err(Error::new(ErrorKind::Busy, format!("session '{session}' is in use")));
        }
        Ok(inner.sessions.remove(session).is_some())
    }
}
