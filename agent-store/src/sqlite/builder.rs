//! How a journal is opened.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent_core::{Error, Result};

use super::{Inner, SqliteJournal, connect::Location, read::Readers, thread::WriterThread};

/// When an append is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When it is on disk: it survives a killed process and a power failure.
    #[default]
    Sync,
    /// When the operating system has it: it survives a killed process; a power failure may take the last moments with it,
    /// never anything in the middle. Many times faster where commits are rare, hardly faster where many runs share them.
    Async,
}

/// Tells the time.
pub(super) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Settings of a [`SqliteJournal`].
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
    durability: Durability,
    lease_ttl: Duration,
    group: usize,
    queue_bytes: usize,
    clock: Clock,
}

impl SqliteBuilder {
    /// The shortest lease: its renewal must not come too late because the disk was slow once.
    const MIN_TTL: Duration = Duration::from_secs(1);

    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            durability: Durability::default(),
            lease_ttl: Duration::from_secs(30),
            group: 256,
            queue_bytes: 256 << 20,
            clock: Arc::new(SystemTime::now),
        }
    }

    /// Sets when an append is acknowledged. Default: [`Durability::Sync`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how long a dead process keeps its sessions from others. Default: 30 seconds; at least one.
    ///
    /// A lease is renewed three times as often, and a transaction of another process is waited for as long as that.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// Sets how many appends share a commit at most. Default: 256; at least one.
    pub fn group(mut self, appends: usize) -> Self {
        self.group = appends.max(1);
        self
    }

    /// Sets how many bytes of entries may wait for the disk. Default: 256 MiB.
    ///
    /// A run waits for the acknowledgement of what it appends, so there is rarely more than a few entries of each. An append
    /// that finds the queue full fails, and its run with it: better than a process without memory.
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Sets the clock by which leases expire, for tests. Default: the system's.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens the journal: reads and checks the file, so it takes a few milliseconds of the calling thread.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the file cannot be opened, is not a journal, or was written by
    /// a newer release; [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a setting that cannot work. Each says what
    /// to do.
    pub fn open(self) -> Result<SqliteJournal> {
        if self.lease_ttl < Self::MIN_TTL {
            let (least, ttl) = (Self::MIN_TTL, self.lease_ttl);
            return Err(Error::config(format!(
                "a lease of {ttl:?} cannot be kept: set lease_ttl to {least:?} or more"
            )));
        }
        let location = Location::new(&self.path, self.durability, self.lease_ttl / 3)?;
        let connection = location.open_writer()?;
        let readers = Arc::new(Readers::new(location.clone()));
        let thread =
            WriterThread::start(connection, &location, self.clock, self.lease_ttl, self.group, self.queue_bytes)?;
        Ok(SqliteJournal(Arc::new(Inner { readers, thread: Arc::new(thread) })))
    }
}

impl fmt::Debug for SqliteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBuilder")
            .field("path", &self.path)
            .field("durability", &self.durability)
            .field("lease_ttl", &self.lease_ttl)
            .field("group", &self.group)
            .field("queue_bytes", &self.queue_bytes)
            .finish_non_exhaustive()
    }
}
