//! The session of a run, as the run sees it: what was said before, and what it notes itself.

use std::{
    fmt,
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agent_core::{
    BoxFuture, Error, ErrorKind, Journal, Result, async_trait,
    journal::{Ack, Entry, EntryBody, IndexCache, JournalWriter, SharedIndex},
};

use crate::{session::numbered, step_log::StepLog};

/// A session in the memory of the process that drives its newest run: its entries from the newest anchor on, and those that the
/// run notes, which go on to Restate.
pub(crate) struct SessionLog {
    run: Arc<str>,
    session: Arc<str>,
    entries: Mutex<Vec<Arc<Entry>>>,
    /// The number of the newest entry from before the run.
    before: u64,
    indexes: IndexCache,
    steps: Arc<StepLog>,
}

impl SessionLog {
    pub(crate) fn new(run: Arc<str>, session: Arc<str>, past: Vec<Arc<Entry>>, steps: Arc<StepLog>) -> Self {
        let before = past.last().map_or(0, |entry| entry.seq);
        Self { run, session, entries: Mutex::new(past), before, indexes: IndexCache::new(1), steps }
    }

    /// The run that notes.
    pub(crate) fn run(&self) -> &Arc<str> {
        &self.run
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, mut entries: Vec<Entry>) -> u64 {
        let mut kept = self.lock();
        let first = kept.last().map_or(0, |entry| entry.seq) + 1;
        // Attempts number a run's entries in their own ways, and at their own times. So an anchor says what others find only where the run begins, after
        // what is the same for all. There is no need for one later: the run is always driven from its beginning.
        entries.retain(|entry| first == self.before + 1 || !is_anchor(entry));
        self.steps.note(&entries);
        let new = (first..).zip(entries).map(|(seq, entry)| numbered(seq, entry));
        kept.extend(new);
        first
    }
}

fn is_anchor(entry: &Entry) -> bool {
    matches!(entry.body, EntryBody::Anchored { .. })
}

struct Writer(Arc<SessionLog>);

impl JournalWriter for Writer {
    /// It is durable with the results of the steps that come after it, before which nothing that it tells of is known to anybody.
    fn append(&self, entries: Vec<Entry>) -> Ack {
        Ack::Done(Some(Ok(self.0.append(entries))))
    }

    /// Which attempt goes on is Restate's to say, at each step.
    fn prove(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(ready(Ok(())))
    }
}

#[async_trait]
impl Journal for SessionHandle {
    async fn open(&self, _: &str, _: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(Writer(self.0.clone())))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        if session != &*self.0.session {
            return Ok(Vec::new());
        }
        let entries = self.0.lock();
        let from = entries.partition_point(|entry| entry.seq <= after);
        Ok(entries[from..].iter().take(limit).cloned().collect())
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        Ok(vec![self.0.session.to_string()])
    }

    async fn anchor(&self, _: &str) -> Result<Option<Arc<Entry>>> {
        Ok(self.0.lock().iter().rfind(|entry| is_anchor(entry)).cloned())
    }

    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.0.indexes.index(self, session).await
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        self.index(session).await // what is before the anchor is not here
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        Err(Error::new(ErrorKind::Busy, "a run of the session is under way"))
    }
}

/// A [`SessionLog`] as a journal.
pub(crate) struct SessionHandle(pub(crate) Arc<SessionLog>);

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLog").field("session", &self.session).field("entries", &self.lock().len()).finish()
    }
}
