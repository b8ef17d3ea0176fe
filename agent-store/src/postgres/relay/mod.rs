//! Relay of transient events between processes on several machines: [`PostgresRelay`].

mod drive;
mod interest;
mod wire;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, Result, async_trait};
use agent_dispatch::{ChunkRelay, MemoryRelay, RelayBatch, RunAddress};
use futures::stream::BoxStream;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use self::{drive::Command, interest::Interest};
use super::{connect::Location, connections::PATIENCE};

/// Minimum interval between two batches of a run.
const INTERVAL: Duration = Duration::from_millis(40);
/// Number of commands that may wait for the connection; further batches are dropped.
const WAITING: usize = 4096;

/// [`ChunkRelay`] over a PostgreSQL database: transient events of runs travel by `NOTIFY` from
/// workers to the servers with viewers. Cheap to clone; clones share one connection.
///
/// Events of one run are sent at most every 40 milliseconds, in payloads below PostgreSQL's limit
/// of 8,000 bytes, and only while a server subscribes to the run: it notifies the publishers when a
/// subscription begins, and every 10 seconds while it lasts. Nothing is written to tables. A lost
/// connection is reopened; events meanwhile are lost, and viewers receive complete messages from
/// the journal instead.
///
/// Notifications are not encrypted beyond the connection, and any user of the database can listen.
/// They need a session: a URL with `pooled=true` is refused. Connect to the server directly.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use agent_dispatch::ChunkRelay;
/// use agent_store::PostgresRelay;
///
/// # async fn example() -> Result<(), agent_core::Error> {
/// let relay: Arc<dyn ChunkRelay> = Arc::new(PostgresRelay::connect("postgres://agent@localhost/agents").await?);
/// # drop(relay);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresRelay(Arc<Inner>);

struct Inner {
    schema: String,
    commands: mpsc::Sender<Command>,
    state: Arc<State>,
}

/// State shared with the task that owns the connection.
#[derive(Default)]
struct State {
    /// Subscribers of this process.
    local: MemoryRelay,
    /// Runs that are watched in any process.
    interest: Interest,
}

impl PostgresRelay {
    /// Connects to the database at `url`, whose form is that of a
    /// [`PostgresJournal`](crate::PostgresJournal). Must be called on the runtime that is to drive
    /// the connection.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached or
    /// rejects the connection; [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid
    /// URL, or one of a pooler.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_schema(url, "agent_queue").await
    }

    /// Like [`connect`](Self::connect), beside a queue in this schema. Default: `agent_queue`.
    /// Relays of different schemas do not see each other's events.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn connect_schema(url: &str, schema: &str) -> Result<Self> {
        let location = Location::new(url, schema, PATIENCE)?;
        if location.is_pooled() {
            return Err(Error::config(
                "a relay needs a session of the database: use a URL that does not lead through a pooler",
            ));
        }
        let (commands, received) = mpsc::channel(WAITING);
        let state = Arc::new(State::default());
        let driver = drive::Driver::connect(location, schema, state.clone()).await?;
        drop(tokio::spawn(driver.run(received)));
        Ok(Self(Arc::new(Inner { schema: schema.to_owned(), commands, state })))
    }

    fn topic(&self, run: &RunAddress) -> String {
        topic(&self.0.schema, run)
    }
}

/// Returns the name by which processes refer to a run: 32 hexadecimal digits.
fn topic(schema: &str, run: &RunAddress) -> String {
    let mut hash = Sha256::new();
    for word in [schema, &run.agent, &run.session, &run.run] {
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[async_trait]
impl ChunkRelay for PostgresRelay {
    fn publish(&self, run: &RunAddress, batch: RelayBatch) {
        let topic = self.topic(run);
        let Some(payloads) = wire::encode(&batch) else {
            return tracing::debug!(run = &*run.run, "a batch is too large for the relay");
        };
        if self.0.commands.try_send(Command::Notify { topic, payloads }).is_err() {
            tracing::debug!(run = &*run.run, "the relay is not connected, or is too slow");
        }
    }

    fn subscribe(&self, run: &RunAddress) -> BoxStream<'static, RelayBatch> {
        let batches = self.0.state.local.subscribe(run);
        let listen = Command::Listen { topic: self.topic(run), run: run.clone() };
        if self.0.commands.try_send(listen).is_err() {
            tracing::warn!(run = &*run.run, "the relay is overloaded: viewers receive complete messages only");
        }
        batches
    }

    fn is_watched(&self, run: &RunAddress) -> bool {
        self.0.state.interest.is_watched(&self.topic(run))
    }

    async fn watched(&self, run: &RunAddress, since: u64) -> u64 {
        self.0.state.interest.watched(self.topic(run), since).await
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }
}

impl fmt::Debug for PostgresRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresRelay").field("schema", &self.0.schema).finish_non_exhaustive()
    }
}
