//! How a journal is opened.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::Result;

use super::{
    Inner, PostgresJournal,
    connect::Location,
    read::Reader,
    thread::{JournalThread, Settings},
};
use crate::{Durability, blob::BLOB_BYTES, error::short_lease};

/// Settings of a [`PostgresJournal`].
///
/// ```no_run
/// use std::time::Duration;
///
/// use agent_store::PostgresJournal;
///
/// # async fn example() -> Result<(), agent_core::Error> {
/// let journal = PostgresJournal::builder("postgres://agent@localhost/agents")
///     .schema("support")
///     .lease_ttl(Duration::from_secs(10))
///     .connect()
///     .await?;
/// # drop(journal);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use]
pub struct PostgresBuilder {
    url: String,
    schema: String,
    durability: Durability,
    lease_ttl: Duration,
    group: usize,
    queue_bytes: usize,
    blob_bytes: usize,
}

impl PostgresBuilder {
    /// The shortest lease: its renewal must not come too late because the network was slow once.
    const MIN_TTL: Duration = Duration::from_secs(1);

    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            schema: "agent_journal".to_owned(),
            durability: Durability::default(),
            lease_ttl: Duration::from_secs(30),
            group: 256,
            queue_bytes: 256 << 20,
            blob_bytes: BLOB_BYTES,
        }
    }

    /// Sets the schema that holds the journal's tables; it is created if it is missing. Default: `agent_journal`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets when an append is acknowledged. Default: [`Durability::Sync`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how long a dead process keeps its sessions from others. Default: 30 seconds; at least one.
    ///
    /// A lease is renewed three times as often, and a lost connection is tried again for as long as that.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// Sets how many appends share a transaction at most. Default: 256; at least one.
    pub fn group(mut self, appends: usize) -> Self {
        self.group = appends.max(1);
        self
    }

    /// Sets how many bytes of entries may wait for the database. Default: 256 MiB. An append that finds the queue full fails,
    /// and its run with it: better than a process without memory.
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

    /// Connects, and creates the tables or brings older ones up to date.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached, refuses, or has tables of a
    /// newer release; [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a URL or a setting that cannot work. Each
    /// says what to do, and none shows the URL.
    pub async fn connect(self) -> Result<PostgresJournal> {
        if self.lease_ttl < Self::MIN_TTL {
            return Err(short_lease(Self::MIN_TTL, self.lease_ttl));
        }
        let location = Location::new(&self.url, &self.schema, self.durability, self.lease_ttl / 3)?;
        let settings = Settings { ttl: self.lease_ttl, group: self.group, queue_bytes: self.queue_bytes };
        let reader = Reader::new(location.clone());
        let thread = Arc::new(JournalThread::start(location, settings).await?);
        let (schema, blob_bytes) = (self.schema, self.blob_bytes);
        Ok(PostgresJournal(Arc::new(Inner { schema, reader, blob_bytes, thread })))
    }
}

impl fmt::Debug for PostgresBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBuilder")
            .field("schema", &self.schema)
            .field("durability", &self.durability)
            .field("lease_ttl", &self.lease_ttl)
            .field("group", &self.group)
            .field("queue_bytes", &self.queue_bytes)
            .field("blob_bytes", &self.blob_bytes)
            .finish_non_exhaustive()
    }
}
