//! The journal: one append-only log per session, from which everything durable is read.
//!
//! Authors of stores implement [`Journal`] and [`JournalWriter`], and fold what they read with a [`SessionIndex`]; tests and
//! tools compare [`Recording`]s.
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
pub(crate) mod replay;

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
};
use crate::error::Result;
pub use crate::state::RunStatus;

/// Where sessions are kept: an append-only log each.
///
/// The fold of a log is the truth, so an implementation only has to keep entries, in order, and hand them back. The
/// conformance suite of `agent-store` (feature `testing`) tells whether it does.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Opens `session` for the runs of one root agent. The writer holds the pair until it is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) if another writer holds it; [`ErrorKind::Store`](crate::ErrorKind::Store)
    /// if the store fails.
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>>;

    /// At most `limit` entries of `session` whose sequence number is above `after`, oldest first. An unknown session is
    /// empty.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>>;

    /// The names of all sessions, sorted.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn sessions(&self) -> Result<Vec<String>>;

    /// The newest entry of a session; `None` if it has none. The default reads all of it.
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

    /// What is known of a session without its content; `None` if it has no entries. The default reads all of it; a store that
    /// keeps count overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        index::read_info(self, session).await
    }

    /// The newest [`Anchored`](EntryBody::Anchored) entry of a session, from which it can be read. Default: none, so that a
    /// session is read from its beginning by those who see it for the first time; a store that can find it overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let _ = session;
        Ok(None)
    }

    /// What all entries of a session mean. The default reads them; a store that has an [`IndexCache`] reads what is new.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        Ok(SessionIndex::read(self, session).await?.into())
    }

    /// What a session's entries mean, perhaps without runs before its newest [anchor](Self::anchor). Default: the
    /// [whole](Self::whole_index).
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.whole_index(session).await
    }

    /// False only if no run of the id `run` began in the session, however long ago: then nothing before its newest
    /// [anchor](Self::anchor) has to be read for the run. Default: asks the [whole index](Self::whole_index); a store that finds
    /// a run by its id overrides it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        Ok(self.whole_index(session).await?.look(|index| index.has_run(run)))
    }

    /// At most `limit` names of sessions that begin with `prefix` and come after `after`, sorted. By default it is picked
    /// from [`sessions`](Self::sessions); a store with an index overrides it.
    ///
    /// # Errors
    /// As [`sessions`](Self::sessions).
    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let mut names = self.sessions().await?;
        names.retain(|name| name.starts_with(prefix) && name.as_str() > after);
        names.truncate(limit);
        Ok(names)
    }

    /// Waits until a session has an entry after `after`, whoever writes it. The default looks again and again, at first after 20
    /// milliseconds and then less and less often, down to once a second; a store that is told of what others write overrides it.
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

    /// Deletes a session and everything in it; true if there was one.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) while a writer holds it.
    async fn delete(&self, session: &str) -> Result<bool>;
}

/// Gives every entry of a session after `after` to `take`, oldest first, reading page by page.
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

/// As [`each_entry`], until one is not wanted.
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

    async fn news(&self, session: &str, after: u64) -> Result<()> {
        (**self).news(session, after).await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        (**self).delete(session).await
    }
}

/// Appends to one session, for one tree of runs.
pub trait JournalWriter: Send + Sync + 'static {
    /// Appends entries, all or none, in the order of the calls; their sequence numbers are given here, gaplessly within the
    /// batch and ascending within the session.
    ///
    /// The entries are handed over when this is called, not when the answer is polled; the answer comes when they are as
    /// durable as the journal makes them.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the batch was not kept, or nobody knows whether it was.
    ///
    /// A writer whose append failed refuses every later one, those too that were handed over before the failure was known:
    /// nothing of it is kept. A log with a hole says that an effect which has happened never began, and a run that is
    /// recovered from it has that effect again. Only a new writer, which [`open`](Journal::open) gives once this one is
    /// dropped, goes on, after what is there. Other writers of the session are not concerned.
    fn append(&self, entries: Vec<Entry>) -> Ack;

    /// Makes sure that the session is still this writer's. A run asks when it has taken an acknowledgement, before it does what it wrote
    /// down: its process may have been stopped meanwhile, and another one may have taken the session over.
    ///
    /// It costs nothing while that is known, such as by a lease that cannot have run out; otherwise the store is asked. A writer that
    /// stands before another one asks that one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the session is another's, or nobody can say. The run then appends no more.
    fn prove(&self) -> BoxFuture<'static, Result<()>>;
}

/// The answer to an append: the first sequence number of the batch.
pub enum Ack {
    /// Known at once.
    Done(Option<Result<u64>>),
    /// Comes later.
    Later(BoxFuture<'static, Result<u64>>),
}

impl Ack {
    /// Takes the first sequence number if it is known already.
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
    /// If it is polled after it was ready.
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
