//! Builder of a journal in SQLite.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use agent_core::Result;

use super::{Inner, SqliteJournal, connect::Location, read::Readers, thread::WriterThread};
use crate::writing::{Writing, writing_setters};

/// Source of the current time.
pub(super) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Builder of a [`SqliteJournal`].
///
/// ```
/// use std::time::Duration;
///
/// use agent_store::SqliteJournal;
///
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let path = dir.path().join("agent.db");
/// let journal = SqliteJournal::builder(path).lease_ttl(Duration::from_secs(10)).open()?;
/// # drop(journal);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct SqliteBuilder {
    path: PathBuf,
    writing: Writing,
    max_bytes: u64,
    migrate: bool,
    clock: Clock,
}

impl SqliteBuilder {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            writing: Writing::default(),
            max_bytes: u64::MAX,
            migrate: true,
            clock: Arc::new(SystemTime::now),
        }
    }

    writing_setters!();

    /// Sets the maximum size of the file in bytes; no effect below its current size. Default:
    /// limited by the disk only. An append that exceeds the limit fails like one on a full disk.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets whether opening creates and migrates the tables. Default: true. If false, a file of an
    /// older format is rejected.
    pub fn migrate(mut self, yes: bool) -> Self {
        self.migrate = yes;
        self
    }

    /// Sets the clock by which leases expire, for tests. Default: the system clock.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens the journal: reads and checks the file, which blocks the calling thread for a few
    /// milliseconds.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the file cannot be opened, is not a
    /// journal, or was written by a newer release;
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid setting. Each message
    /// says what to do.
    pub fn open(self) -> Result<SqliteJournal> {
        let writing = self.writing;
        writing.check()?;
        let location = Location::new(&self.path, writing.durability, writing.heartbeat(), self.max_bytes)?;
        let connection = location.open_writer(self.migrate)?;
        let readers = Arc::new(Readers::new(location.clone()));
        let thread = Arc::new(WriterThread::start(connection, &location, self.clock, writing)?);
        Ok(SqliteJournal(Arc::new(Inner {
            readers,
            thread,
            blob_bytes: writing.blob_bytes,
            indexes: agent_core::journal::IndexCache::default(),
            searched: crate::project::Searched::default(),
        })))
    }
}

impl fmt::Debug for SqliteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBuilder")
            .field("path", &self.path)
            .field("writing", &self.writing)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}
