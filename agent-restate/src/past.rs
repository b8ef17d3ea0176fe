//! In-memory journal of an active run: the session's earlier entries and those that the run
//! records.

use std::{
    fmt,
    future::ready,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agent_core::{
    BoxFuture, Error, ErrorKind, Journal, Result, async_trait,
    journal::{Ack, Entry, EntryBody, IndexCache, JournalWriter, SharedIndex},
};

use crate::{blobs::Blobs, record::size, session::numbered, step_log::StepLog};

/// Session in the memory of the process that drives its newest run: its entries from the newest
/// snapshot on, and those that the run records, which the handler writes to Restate.
pub(crate) struct SessionLog {
    run: Arc<str>,
    session: Arc<str>,
    entries: Mutex<Vec<Arc<Entry>>>,
    /// Sequence number of the newest entry from before the run.
    before: u64,
    blobs: Blobs,
    indexes: IndexCache,
    steps: Arc<StepLog>,
}

impl SessionLog {
    pub(crate) fn new(
        run: Arc<str>,
        session: Arc<str>,
        past: Vec<Arc<Entry>>,
        steps: Arc<StepLog>,
        blobs: Blobs,
    ) -> Self {
        let before = past.last().map_or(0, |entry| entry.seq);
        Self { run, session, entries: Mutex::new(past), before, blobs, indexes: IndexCache::new(1), steps }
    }

    /// Returns the id of the run that records entries.
    pub(crate) fn run(&self) -> &Arc<str> {
        &self.run
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, mut entries: Vec<Entry>) -> Result<u64> {
        let mut kept = self.lock();
        let first = kept.last().map_or(0, |entry| entry.seq) + 1;
        // Attempts may number a run's entries differently and record them at other times. A
        // snapshot is therefore valid for other readers only at the start of the run, after entries
        // that are the same in every attempt. Later snapshots are not needed, because a run is
        // always replayed from its beginning. A snapshot that is too large is dropped.
        let admitted = |entry: &Entry| match self.blobs.takes_all() {
            true => Ok(()),
            false => self.blobs.admits("an entry", size(entry), Blobs::MOST_OF_ENTRY),
        };
        entries.retain(|entry| !is_anchor(entry) || first == self.before + 1 && admitted(entry).is_ok());
        entries.iter().try_for_each(admitted)?;
        self.steps.note(&entries);
        let new = (first..).zip(entries).map(|(seq, entry)| numbered(seq, entry));
        kept.extend(new);
        Ok(first)
    }
}

fn is_anchor(entry: &Entry) -> bool {
    matches!(entry.body, EntryBody::Anchored { .. })
}

struct Writer {
    log: Arc<SessionLog>,
    /// Set once an append was refused: later entries must not be recorded without it.
    refused: AtomicBool,
}

impl JournalWriter for Writer {
    /// The entries become durable with the results of the steps that follow. Nothing that they
    /// record is visible outside before that.
    fn append(&self, entries: Vec<Entry>) -> Ack {
        if self.refused.load(Ordering::SeqCst) {
            let message = "an entry before this one was refused";
            return Ack::Done(Some(Err(Error::new(ErrorKind::Store, message))));
        }
        let appended = self.log.append(entries);
        self.refused.store(appended.is_err(), Ordering::SeqCst);
        Ack::Done(Some(appended))
    }

    /// Restate itself decides at each step which attempt continues: no fencing check is needed.
    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        Box::pin(ready(Ok(())))
    }
}

#[async_trait]
impl Journal for SessionHandle {
    async fn open(&self, _: &str, _: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(Writer { log: self.0.clone(), refused: AtomicBool::new(false) }))
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
        self.index(session).await // entries before the snapshot are not loaded
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        Err(Error::new(ErrorKind::Busy, "a run of the session is active"))
    }
}

/// [`Journal`] implementation of a [`SessionLog`].
pub(crate) struct SessionHandle(pub(crate) Arc<SessionLog>);

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLog").field("session", &self.session).field("entries", &self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agent_core::{Message, journal::SessionIndex};

    use super::*;
    use crate::FileBlobs;

    fn says(bytes: usize) -> Entry {
        Entry::new("r".into(), 7, EntryBody::MessageAppended { message: Message::user("x".repeat(bytes)) })
    }

    fn journal(past: Vec<Arc<Entry>>, blobs: Blobs) -> SessionHandle {
        let steps = Arc::new(StepLog::new(Duration::from_secs(30), "worker".into()));
        SessionHandle(Arc::new(SessionLog::new("r".into(), "s".into(), past, steps, blobs)))
    }

    #[tokio::test]
    async fn an_entry_that_restate_never_takes_is_refused_at_once_unless_there_are_blobs() {
        let large = || says(Blobs::MOST_OF_ENTRY);
        let writer = journal(Vec::new(), Blobs::new(None, 0)).open("s", "a").await.expect("is free");
        assert_eq!(writer.append(vec![says(10)]).await.expect("is taken"), 1);
        let error = writer.append(vec![large()]).await.expect_err("is refused");
        assert!(error.kind() == ErrorKind::Store && error.message().contains("blobs(..)"), "{error}");
        writer.append(vec![says(10)]).await.expect_err("nothing is told without what was before it");

        let folder = tempfile::tempdir().expect("a folder");
        let blobs = Blobs::new(Some(Arc::new(FileBlobs::new(folder.path()))), 1_000);
        let writer = journal(Vec::new(), blobs).open("s", "a").await.expect("is free");
        assert_eq!(writer.append(vec![large()]).await.expect("is taken"), 1);
    }

    #[tokio::test]
    async fn an_anchor_is_noted_where_a_run_begins_and_nowhere_else() {
        let past = numbered(1, says(10));
        let mut index = SessionIndex::default();
        index.apply(&past);
        let anchor = || {
            let anchor = Box::new(index.anchor(1).expect("can be read back"));
            Entry::new("anchor".into(), 8, EntryBody::Anchored { anchor })
        };
        let journal = journal(vec![past], Blobs::new(None, 0));
        let writer = journal.open("s", "a").await.expect("is free");
        for entry in [anchor(), says(1), anchor(), says(2)] {
            writer.append(vec![entry]).await.expect("is taken");
        }
        let all = journal.read("s", 0, 9).await.expect("is read");
        let kept: Vec<_> = all.iter().map(|entry| (entry.seq, is_anchor(entry))).collect();
        assert_eq!(kept, [(1, false), (2, true), (3, false), (4, false)]);
    }
}
