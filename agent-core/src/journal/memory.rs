//! A journal in memory.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;

use super::{Ack, Entry, Journal, JournalWriter, SessionInfo};
use crate::{Error, ErrorKind, Result};

/// Sessions in memory: gone with the process. What agents without a store use, one for each run.
///
/// Entries are kept as they come, not serialised. Cheap to clone; every clone is the same journal.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// In boxes: a map has room for several, and most have one.
    sessions: BTreeMap<Arc<str>, Box<Session>>,
    held: HashSet<(Arc<str>, Arc<str>)>,
}

/// The batches of a session as they came, each with the sequence number of its first entry.
#[derive(Debug, Default)]
struct Session {
    batches: Vec<(u64, Vec<Entry>)>,
    entries: u64,
    /// The newest anchor's sequence number.
    anchor: Option<u64>,
    /// What is known of it without its content, up to the batch of this number: nobody may ever ask.
    known: (SessionInfo, usize),
}

impl Session {
    fn append(&mut self, batch: Vec<Entry>) -> u64 {
        let first = self.entries + 1;
        self.entries += batch.len() as u64;
        let anchor = (first..).zip(&batch).filter(|(_, entry)| entry.body.is_anchor()).last();
        self.anchor = anchor.map(|(seq, _)| seq).or(self.anchor);
        if !batch.is_empty() {
            self.batches.push((first, batch));
        }
        first
    }

    fn info(&mut self) -> Option<SessionInfo> {
        let (info, upto) = &mut self.known;
        self.batches[*upto..].iter().flat_map(|(_, batch)| batch).for_each(|entry| info.apply(entry));
        *upto = self.batches.len();
        (self.entries > 0).then(|| info.clone())
    }

    fn read(&self, after: u64, limit: usize) -> Vec<Arc<Entry>> {
        let from = self.batches.partition_point(|(first, batch)| first + (batch.len() as u64 - 1) <= after);
        let entries = self.batches[from..].iter().flat_map(|(first, batch)| (*first..).zip(batch));
        let wanted = entries.skip_while(|(seq, _)| *seq <= after).take(limit);
        wanted.map(|(seq, entry)| Arc::new(Entry { seq, ..entry.clone() })).collect()
    }
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
        Ack::Done(Some(Ok(log.append(entries))))
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
        Ok(inner.sessions.get(session).map(|log| log.read(after, limit)).unwrap_or_default())
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        Ok(self.lock().sessions.keys().map(ToString::to_string).collect())
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let inner = self.lock();
        Ok(inner.sessions.get(session).and_then(|log| log.read(log.entries.saturating_sub(1), 1).pop()))
    }

    async fn anchor(&self, session: &str) -> Result<Option<u64>> {
        Ok(self.lock().sessions.get(session).and_then(|log| log.anchor))
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        Ok(self.lock().sessions.get_mut(session).and_then(|log| log.info()))
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let inner = self.lock();
        let from = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let names = inner.sessions.range::<str, _>((from, Bound::Unbounded)).map(|(name, _)| &**name);
        Ok(names.take_while(|name| name.starts_with(prefix)).take(limit).map(str::to_owned).collect())
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        let mut inner = self.lock();
        if inner.held.iter().any(|(s, _)| &**s == session) {
            return Err(Error::new(ErrorKind::Busy, format!("session '{session}' is in use")));
        }
        Ok(inner.sessions.remove(session).is_some())
    }
}
