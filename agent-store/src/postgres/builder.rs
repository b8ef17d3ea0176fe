//! How a journal is opened.

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

    /// Sets the schema that holds the journal's tables; it is created if it is missing. Default: `agent_journal`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets how long one connection is waited for. Default: the URL's `connect_timeout`, or 10 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Sets how many connections read at once, at most; they are made when they are needed. Default: 4; at least one.
    pub fn read_connections(mut self, most: usize) -> Self {
        self.reading.connections = most.max(1);
        self
    }

    /// Sets how long a read waits for a connection, and then for its answer. Default: 30 seconds. A read that was not answered
    /// is tried once more, over a new connection.
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.reading.timeout = timeout;
        self
    }

    /// Sets how long a connection that reads is kept when nobody uses it. Default: 5 minutes.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.reading.idle_timeout = timeout;
        self
    }

    writing_setters!();

    /// Connects, and creates the tables or brings older ones up to date.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached, refuses, or has tables of a
    /// newer release; [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a URL or a setting that cannot work. Each
    /// says what to do, and none shows the URL.
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
        })))
    }
}

impl fmt::Debug for PostgresBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresBuilder")
            .field("schema", &self.schema)
            .field("connect_timeout", &self.connect_timeout)
            .field("reading", &self.reading)
            .field("writing", &self.writing)
            .finish_non_exhaustive()
    }
}
