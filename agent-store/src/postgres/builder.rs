//! Builder of a journal in PostgreSQL.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::Result;

use super::{
    Inner, PostgresJournal,
    connect::Location,
    news::News,
    readers::{Readers, Reading},
    thread::JournalThread,
};
use crate::writing::{Writing, writing_setters};

/// Builder of a [`PostgresJournal`].
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
    connect_timeout: Option<Duration>,
    reading: Reading,
    writing: Writing,
}

impl PostgresBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            schema: "agent_journal".to_owned(),
            connect_timeout: None,
            reading: Reading::default(),
            writing: Writing::default(),
        }
    }

    /// Sets the schema of the journal's tables, which is created if missing. Default:
    /// `agent_journal`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets the timeout for opening one connection. Default: the URL's `connect_timeout`, or 10
    /// seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of read connections, which are opened on demand. Default: 4;
    /// minimum: one.
    pub fn read_connections(mut self, most: usize) -> Self {
        self.reading.connections = most.max(1);
        self
    }

    /// Sets the timeout of a read, first for a free connection and then for its answer. Default: 30
    /// seconds. A read without an answer is retried once, over a new connection.
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.reading.timeout = timeout;
        self
    }

    /// Sets the time after which an idle read connection is closed. Default: 5 minutes.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.reading.idle_timeout = timeout;
        self
    }

    writing_setters!();

    /// Connects, and creates or migrates the tables.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached,
    /// rejects the connection, or has tables of a newer release;
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid URL or setting. Each
    /// message says what to do, and none contains the URL.
    pub async fn connect(self) -> Result<PostgresJournal> {
        let writing = self.writing;
        writing.check()?;
        let location =
            Location::new(&self.url, &self.schema, writing.heartbeat())?.connect_timeout(self.connect_timeout);
        let thread = Arc::new(JournalThread::start(location.clone(), writing).await?);
        let readers = Readers::new(location, self.reading, thread.runtime().clone());
        let (schema, blob_bytes) = (self.schema, writing.blob_bytes);
        Ok(PostgresJournal(Arc::new(Inner {
            schema,
            news: News::new(readers.clone()),
            readers,
            blob_bytes,
            thread,
            indexes: agent_core::journal::IndexCache::default(),
            searched: crate::project::Searched::default(),
        })))
    }
}

impl fmt::Debug for PostgresBuilder {
    /// Omits the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBuilder")
            .field("schema", &self.schema)
            .field("connect_timeout", &self.connect_timeout)
            .field("reading", &self.reading)
            .field("writing", &self.writing)
            .finish_non_exhaustive()
    }
}
