//! How a journal is opened.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent_core::Result;

use super::{Inner, SqliteJournal, connect::Location, read::Readers, thread::WriterThread};
use crate::{Durability, blob::BLOB_BYTES, error::short_lease};

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
    blob_bytes: usize,
    max_bytes: u64,
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
            blob_bytes: BLOB_BYTES,
            max_bytes: u64::MAX,
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

    /// Sets from how many bytes on a string in an entry is kept by content, once for all entries that have it. Default:
    /// 4 KiB; at least one byte. A journal can be read whatever it was written with.
    pub fn blob_bytes(mut self, bytes: usize) -> Self {
        self.blob_bytes = bytes.max(1);
        self
    }

    /// Sets how large the file may become, in bytes; without effect below what it has. Default: no limit but the disk's. An
    /// append that would need more fails as on a full disk.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
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
            return Err(short_lease(Self::MIN_TTL, self.lease_ttl));
        }
        let location = Location::new(&self.path, self.durability, self.lease_ttl / 3, self.max_bytes)?;
        let connection = location.open_writer()?;
        let readers = Arc::new(Readers::new(location.clone()));
        let thread =
            WriterThread::start(connection, &location, self.clock, self.lease_ttl, self.group, self.queue_bytes)?;
        Ok(SqliteJournal(Arc::new(Inner { readers, thread: Arc::new(thread), blob_bytes: self.blob_bytes })))
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
            .field("blob_bytes", &self.blob_bytes)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}
