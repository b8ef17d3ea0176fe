//! The journal: one append-only log per session, the source of all durable data.
//!
//! Store authors implement [`Journal`] and [`JournalWriter`], and fold what they read with a
//! [`SessionIndex`]; tests and tools compare [`Recording`]s.
//!
//! ```
//! use agent_core::journal::{Journal, MemoryJournal, each_entry};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let journal = MemoryJournal::default();
//! let mut count = 0;
//! each_entry(&journal, "s1", 0, |_| count += 1).await?;
//! assert_eq!((count, journal.info("s1").await?.is_none()), (0, true), "nothing was written yet");
//! # Ok::<(), agent_core::Error>(()) }).unwrap();
//! ```

mod apply;
pub(crate) mod durable;
mod entry;
mod fork;
mod index;
mod json;
mod memory;
mod recording;
mod replay;
mod summary;
pub(crate) mod tape;

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::BoxFuture;

pub(crate) use self::durable::{
    Durable, KeptCall, KeptError, KeptRun, KeptValue, ServedEnd, ServedRun, Step, StepBody, StepKind, StepResult, Steps,
};
pub use self::{
    entry::{Entry, EntryBody},
    fork::fork_at,
    index::{
        Anchor, EDITED, IndexCache, Liveness, RunRecord, SessionIndex, SessionInfo, SessionView, SharedIndex,
        SubAgentRecord, liveness_of,
    },
    memory::MemoryJournal,
    recording::{Divergence, Recording, diff},
    replay::RecordedBeginning,
    summary::{METADATA, RunFilter, RunQuery, RunSummary, SessionQuery, SessionSummary},
};
use crate::error::Result;
pub use crate::state::RunStatus;

/// Store of sessions: one append-only log per session.
///
/// All durable state is a fold of the log, so an implementation only has to store entries in order
/// and return them. The conformance suite of `agent-store` (feature `testing`) checks an
/// implementation.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Opens `session` for the runs of one root agent. The writer holds the (session, agent) pair
    /// until it is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) if another writer holds the pair;
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>>;

    /// Returns at most `limit` entries of `session` with a sequence number above `after`, oldest
    /// first. An unknown session is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>>;

    /// Returns the names of all sessions, sorted.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn sessions(&self) -> Result<Vec<String>>;

    /// Returns the newest entry of a session; `None` if it has no entries. The default
    /// implementation reads the whole session.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        const PAGE: usize = 500;
        let mut newest: Option<Arc<Entry>> = None;
        loop {
            let page = self.read(session, newest.as_ref().map_or(0, |entry| entry.seq), PAGE).await?;
            let is_last = page.len() < PAGE;
            newest = page.into_iter().next_back().or(newest);
            if is_last {
                return Ok(newest);
            }
        }
    }

    /// Returns the metadata of a session; `None` if it has no entries. The default implementation
    /// reads the whole session; a store that keeps counts overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        index::read_info(self, session).await
    }

    /// Returns the newest [`Anchored`](EntryBody::Anchored) entry (snapshot) of a session, from
    /// which the session can be read. The default implementation returns `None`, so that the first
    /// read starts at the session's beginning; a store that can find the entry overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let _ = session;
        Ok(None)
    }

    /// Returns the index of all entries of a session. The default implementation reads them all; a
    /// store with an [`IndexCache`] reads only new entries.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        Ok(SessionIndex::read(self, session).await?.into())
    }

    /// Returns the index of a session, possibly without runs older than its newest
    /// [anchor](Self::anchor). The default implementation returns the [whole
    /// index](Self::whole_index).
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.whole_index(session).await
    }

    /// Returns `false` only if no run with the id `run` ever began in the session: then no entry
    /// before its newest [anchor](Self::anchor) has to be read for the run. The default
    /// implementation uses the [whole index](Self::whole_index); a store that finds a run by its id
    /// overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        Ok(self.whole_index(session).await?.look(|index| index.has_run(run)))
    }

    /// Returns at most `limit` names of sessions, sorted, that begin with `prefix` and sort after
    /// `after`. The default implementation filters [`sessions`](Self::sessions); a store with an
    /// index overrides it.
    ///
    /// # Errors
    /// Those of [`sessions`](Self::sessions).
    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let mut names = self.sessions().await?;
        names.retain(|name| name.starts_with(prefix) && name.as_str() > after);
        names.truncate(limit);
        Ok(names)
    }

    /// Returns summaries of sessions, most recently active first. The default implementation folds
    /// every session whose name has the query's prefix; a store with a projection answers from an
    /// index.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        summary::recent(self, query).await
    }

    /// Returns summaries of root runs, newest first: all, those that are
    /// [incomplete](RunQuery::incomplete), or those that [wait](RunQuery::waiting) for answers. The
    /// default implementation folds every session that the query allows; a store with a projection
    /// answers from an index.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        summary::runs(self, query).await
    }

    /// Waits until the session has an entry after `after`, regardless of its writer. The default
    /// implementation polls, first after 20 milliseconds and then with doubled pauses of up to one
    /// second; a store that receives notifications overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn news(&self, session: &str, after: u64) -> Result<()> {
        const LONGEST: Duration = Duration::from_secs(1);
        let mut pause = Duration::from_millis(20);
        while self.read(session, after, 1).await?.is_empty() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
        Ok(())
    }

    /// Deletes a session with all its entries. Returns `true` if it existed.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) while a writer holds the session.
    async fn delete(&self, session: &str) -> Result<bool>;
}

/// Calls `take` with every entry of a session after `after`, oldest first. Reads page by page.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn each_entry(
    journal: &(impl Journal + ?Sized),
    session: &str,
    after: u64,
    mut take: impl FnMut(&Entry),
) -> Result<()> {
    each_entry_while(journal, session, after, |entry| {
        take(entry);
        true
    })
    .await
}

/// Like [`each_entry`], but stops when `take` returns `false`.
pub(crate) async fn each_entry_while(
    journal: &(impl Journal + ?Sized),
    session: &str,
    mut after: u64,
    mut take: impl FnMut(&Entry) -> bool,
) -> Result<()> {
    const PAGE: usize = 500;
    loop {
        let page = journal.read(session, after, PAGE).await?;
        let goes_on = page.iter().all(|entry| take(entry));
        match page.last() {
            Some(last) if goes_on && page.len() == PAGE => after = last.seq,
            _ => return Ok(()),
        }
    }
}

#[async_trait]
impl<J: Journal + ?Sized> Journal for Arc<J> {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        (**self).open(session, agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        (**self).read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        (**self).sessions().await
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        (**self).newest(session).await
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        (**self).info(session).await
    }

    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        (**self).anchor(session).await
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        (**self).whole_index(session).await
    }

    async fn index(&self, session: &str) -> Result<SharedIndex> {
        (**self).index(session).await
    }

    async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        (**self).has_run(session, run).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        (**self).list(prefix, after, limit).await
    }

    async fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        (**self).recent(query).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        (**self).runs(query).await
    }

    async fn news(&self, session: &str, after: u64) -> Result<()> {
        (**self).news(session, after).await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        (**self).delete(session).await
    }
}

/// Writer of one session, used by one tree of runs.
pub trait JournalWriter: Send + Sync + 'static {
    /// Appends a batch of entries atomically, in the order of the calls. The journal assigns the
    /// sequence numbers: consecutive within a batch and ascending within the session.
    ///
    /// The entries are handed over when this method is called, not when the returned [`Ack`] is
    /// polled. The acknowledgement arrives once the entries are as durable as the journal makes
    /// them.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the batch was not stored, or if the outcome
    /// is unknown.
    ///
    /// After a failed append, the writer rejects every later one, including those that were handed
    /// over before the failure was known; none of them is stored. A log with a gap would claim that
    /// an effect that happened never began, and a run recovered from it would repeat the effect.
    /// Only a new writer, which [`open`](Journal::open) returns once this one is dropped, can
    /// append after the existing entries. Other writers of the session are not affected.
    fn append(&self, entries: Vec<Entry>) -> Ack;

    /// Verifies that this writer still owns the session (a fencing check). A run calls it after an
    /// acknowledgement and before the effect that the entries announce: the process may have been
    /// paused meanwhile, and another process may have taken the session over.
    ///
    /// Costs nothing while ownership is known, for example under a lease that cannot have expired;
    /// otherwise it queries the store. A wrapping writer delegates to the inner one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if another process owns the session or the
    /// owner cannot be determined. The run then appends no more.
    fn verify_lease(&self) -> BoxFuture<'static, Result<()>>;
}

/// Acknowledgement of an append: resolves to the first sequence number of the batch.
pub enum Ack {
    /// Already resolved.
    Done(Option<Result<u64>>),
    /// Resolves later.
    Later(BoxFuture<'static, Result<u64>>),
}

impl Ack {
    /// Takes the first sequence number if the append has already succeeded.
    pub(crate) fn take_first(&mut self) -> Option<u64> {
        match self {
            Self::Done(result @ Some(Ok(_))) => result.take().and_then(Result::ok),
            _ => None,
        }
    }
}

impl Future for Ack {
    type Output = Result<u64>;

    /// # Panics
    /// If it is polled again after it returned `Ready`.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(result) => Poll::Ready(result.take().expect("an Ack answers once")),
            Self::Later(future) => future.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(result) => f.debug_tuple("Done").field(result).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}
