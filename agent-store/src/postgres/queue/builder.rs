//! Builder of a queue in PostgreSQL.

use std::{fmt, sync::Arc};

use agent_core::Result;

use super::{Inner, PostgresQueue, listen::listen, statements::Statements};
use crate::{
    postgres::{
        connect::Location,
        connections::{Connections, PATIENCE},
    },
    queue::{News, QueueLimits},
};

/// Migrations from an empty schema to format 1, and so on; see the journal's.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("indexes.sql"),
    include_str!("stands.sql"),
    include_str!("versions.sql"),
];

/// Builder of a [`PostgresQueue`].
#[derive(Clone)]
#[must_use]
pub struct PostgresQueueBuilder {
    url: String,
    schema: String,
    connections: usize,
    listen: bool,
    limits: QueueLimits,
}

impl PostgresQueueBuilder {
    pub(super) fn new(url: &str) -> Self {
        let (url, schema) = (url.to_owned(), "agent_queue".to_owned());
        Self { url, schema, connections: 4, listen: true, limits: QueueLimits::default() }
    }

    /// Sets the schema of the queue's tables, which is created if missing. Default: `agent_queue`.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// Sets the maximum number of connections, beside the listening one. Default: 4; minimum: one.
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = most.max(1);
        self
    }

    /// Sets whether `LISTEN` wakes workers. Default: true; processes that only send jobs do not
    /// need it. Disabled behind a [pooler](crate::PostgresJournal#poolers) whose URL says
    /// `pooled=true`: workers then poll once a second.
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Sets the limits on queued and running jobs. Default: unlimited.
    pub fn limits(mut self, limits: QueueLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Connects, and creates or migrates the tables.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached,
    /// rejects the connection, or has tables of a newer release;
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid URL or setting. Each
    /// message says what to do, and none contains the URL.
    pub async fn connect(self) -> Result<PostgresQueue> {
        let location = Location::new(&self.url, &self.schema, PATIENCE)?;
        let set_up = |location: Location| async move {
            location.migrate(MIGRATIONS).await?;
            Ok(Statements::new(location))
        };
        let connections = Connections::open(location.clone(), "agent-queue", self.connections, set_up).await?;
        let news = News::default();
        if self.listen && !location.is_pooled() {
            let channel = Statements::new(location.clone()).channel().to_owned();
            // Ends with the runtime of the connections.
            drop(connections.runtime().spawn(listen(location, channel, news.clone())));
        }
        Ok(PostgresQueue(Arc::new(Inner { schema: self.schema, limits: self.limits, connections, news })))
    }
}

impl fmt::Debug for PostgresQueueBuilder {
    /// Omits the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresQueueBuilder")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("listen", &self.listen)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
