//! Journal in one SQLite file: [`SqliteJournal`].

mod builder;
mod connect;
mod error;
mod lease;
mod project;
mod queue;
mod read;
mod summaries;
mod tables;
mod thread;
mod upkeep;

use std::{fmt, path::Path, sync::Arc};

use agent_core::{
    Journal, Result, async_trait,
    journal::{
        Entry, IndexCache, JournalWriter, RunQuery, RunSummary, SessionInfo, SessionQuery, SessionSummary, SharedIndex,
    },
};

pub use self::builder::SqliteBuilder;
pub(crate) use self::error::store_error;
use self::{
    lease::{Lease, SqliteWriter},
    queue::{Outcome, job},
    read::{Reader, Readers},
    tables::Tables,
    thread::WriterThread,
};
use crate::{answer::ask, project::Searched, stats::Stats};

/// Journal in one SQLite file. Cheap to clone; clones share one journal.
///
/// An append is acknowledged when it is on disk: it then survives a killed process and a power
/// failure (see [`Durability`](crate::Durability)). One thread writes; appends that arrive while it
/// writes share the next transaction, so that a thousand runs cost a few commits instead of a
/// thousand. Reads use connections of their own and run on tokio's blocking threads.
///
/// A writer holds a lease on its session and agent, which the thread renews. Other processes on the
/// same machine may use the same file: for a held pair they get
/// [`Busy`](agent_core::ErrorKind::Busy), and they take the pair over once its holder has been dead
/// for the duration of the lease. If the holder was only suspended, its next append fails and
/// writes nothing, and a run that already had an acknowledgement fails before its next effect.
///
/// A writer whose append failed rejects all further appends, which would leave a gap in the log:
/// drop it and open the session again.
///
/// Dropping the last handle (journal or writer) waits until all accepted appends are written. The
/// file can be read at any time with `sqlite3 agent.db 'select * from history'`.
///
/// ```
/// use agent_store::SqliteJournal;
///
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let path = dir.path().join("new/directories/too/agent.db");
/// let journal = SqliteJournal::open(path)?;
/// # drop(journal);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct SqliteJournal(Arc<Inner>);

struct Inner {
    // Declared before the thread, so that the thread's connection closes last and leaves a single
    // file without a log.
    readers: Arc<Readers>,
    thread: Arc<WriterThread>,
    blob_bytes: usize,
    indexes: IndexCache,
    searched: Searched,
}

impl SqliteJournal {
    /// Opens the journal at `path` with the defaults of [`SqliteBuilder`]; creates the file and its
    /// directory if missing.
    ///
    /// # Errors
    /// The errors of [`SqliteBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Returns a builder for a journal at `path`.
    pub fn builder(path: impl AsRef<Path>) -> SqliteBuilder {
        SqliteBuilder::new(path.as_ref())
    }

    /// Returns the write statistics since this handle's journal was opened.
    pub fn stats(&self) -> Stats {
        self.0.thread.stats()
    }

    /// Runs a job in the thread's next transaction.
    async fn job<T: Send + 'static>(&self, run: impl FnMut(&Tables<'_>) -> Outcome<T> + Send + 'static) -> Result<T> {
        ask(|reply| self.0.thread.queue().push(0, job(run, move |outcome| drop(reply.send(outcome))))).await
    }

    /// Rebuilds the projection of sessions that lack it.
    async fn project(&self) -> Result<()> {
        const PAGE: i64 = 100;
        let search = async {
            loop {
                let names = self.0.readers.run(|reader| reader.unprojected(PAGE)).await?;
                if names.is_empty() {
                    return Ok(());
                }
                for name in names {
                    self.job(move |tables| tables.rebuild(&name)).await?;
                }
            }
        };
        self.0.searched.search(search).await
    }

    fn path(&self) -> &Path {
        self.0.readers.location().path()
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        let (session, agent) = (Arc::<str>::from(session), Arc::<str>::from(agent));
        let thread = self.0.thread.clone();
        let lease = ask(|reply| {
            let (session, agent) = (session.clone(), agent.clone());
            let (held, queue) = (thread.leases().clone(), thread.queue().clone());
            let take =
                move |tables: &Tables<'_>| Ok(tables.take_lease(&session, &agent)?.map(|epoch| (epoch, tables.now)));
            // The thread creates the lease, not the caller, which may have been cancelled: the
            // lease is then released immediately.
            let deliver = move |taken: Result<(i64, u64)>| {
                drop(reply.send(taken.map(|(epoch, asked)| Lease::new(epoch, asked, held, queue))));
            };
            thread.queue().push(0, job(take, deliver))
        });
        let lease = lease.await?;
        Ok(Arc::new(SqliteWriter::new(lease, session, agent, thread, self.0.blob_bytes)))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        let session = session.to_owned();
        self.0.readers.run(move |reader| reader.entries(&session, after, limit)).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.readers.run(Reader::sessions).await
    }

    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let session = session.to_owned();
        self.0.readers.run(move |reader| reader.anchor(&session)).await
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        self.0.indexes.whole_index(self, session).await
    }

    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.0.indexes.index(self, session).await
    }

    async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        let (session, run) = (session.to_owned(), run.to_owned());
        self.0.readers.run(move |reader| reader.has_run(&session, &run)).await
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        let session = session.to_owned();
        self.0.readers.run(move |reader| reader.newest(&session)).await
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        let session = session.to_owned();
        self.0.readers.run(move |reader| reader.info(&session)).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        self.0.readers.run(move |reader| reader.list(&prefix, &after, limit)).await
    }

    async fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        self.project().await?;
        let query = query.clone();
        self.0.readers.run(move |reader| reader.recent(&query)).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        self.project().await?;
        let query = query.clone();
        self.0.readers.run(move |reader| reader.runs(&query)).await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        let session = session.to_owned();
        self.job(move |tables| tables.delete(&session)).await
    }
}

impl fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJournal").field("path", &self.path()).finish_non_exhaustive()
    }
}
