//! Read connections, apart from the writing one.

use std::time::Duration;

use agent_core::Result;
use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult},
};
use tokio::{runtime::Handle, time::timeout};
use tokio_postgres::{Row, types::ToSql};

use super::{
    connect::{Db, Location},
    error::{all_busy, is_fatal, read_takes_too_long, store_error},
    query::Query,
    statements::Statements,
};
use crate::error::thread_ended;

/// Number of read connections, with their timeouts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) connections: usize,
    pub(super) timeout: Duration,
    pub(super) idle_timeout: Duration,
}

impl Default for Reading {
    fn default() -> Self {
        Self { connections: 4, timeout: Duration::from_secs(30), idle_timeout: Duration::from_secs(5 * 60) }
    }
}

/// Parameters of a read.
pub(super) type Parameters = Vec<Box<dyn ToSql + Send + Sync>>;

/// Pool of read connections, opened on demand.
///
/// A read runs on the thread's runtime, whose clock runs even where the caller's is paused, and
/// continues if the caller is cancelled: a connection returns to the pool without pending answers.
#[derive(Clone)]
pub(super) struct Readers {
    pool: Pool<Connector>,
    reading: Reading,
    runtime: Handle,
}

/// Opens the pool's connections and detects unusable ones.
struct Connector {
    location: Location,
    idle_timeout: Duration,
}

impl Manager for Connector {
    type Type = Db;
    type Error = agent_core::Error;

    async fn create(&self) -> Result<Db> {
        self.location.connect().await
    }

    async fn recycle(&self, db: &mut Db, metrics: &Metrics) -> RecycleResult<Self::Error> {
        match is_of_use(db, *metrics, self.idle_timeout) {
            true => Ok(()),
            false => Err(RecycleError::message("closed, or idle for too long")),
        }
    }
}

fn is_of_use(db: &Db, metrics: Metrics, idle_timeout: Duration) -> bool {
    !db.client.is_closed() && metrics.last_used() < idle_timeout
}

/// Error of an unusable connection.
struct Broken(agent_core::Error);

impl Readers {
    pub(super) fn new(location: Location, reading: Reading, runtime: Handle) -> Self {
        let connector = Connector { location, idle_timeout: reading.idle_timeout };
        let pool = Pool::builder(connector)
            .max_size(reading.connections)
            .wait_timeout(Some(reading.timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .expect("a runtime is set for the timeouts");
        drop(runtime.spawn(close_idle(pool.clone(), reading.idle_timeout)));
        Self { pool, reading, runtime }
    }

    pub(super) fn location(&self) -> &Location {
        &self.pool.manager().location
    }

    /// Returns the runtime for background reads.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns the rows of a read-only statement.
    pub(super) async fn rows(&self, pick: fn(&Statements) -> &Query, parameters: Parameters) -> Result<Vec<Row>> {
        let readers = self.clone();
        let reading = self.runtime.spawn(async move {
            match readers.attempt(pick, &parameters).await {
                Ok(rows) => rows,
                Err(Broken(e)) => {
                    tracing::debug!(error = %e, "a read connection broke; retrying over another one");
                    // The event that broke one connection has most likely broken the others.
                    drop(readers.pool.retain(|_, _| false));
                    readers.attempt(pick, &parameters).await.unwrap_or_else(|Broken(e)| Err(e))
                }
            }
        });
        reading.await.map_err(|_| thread_ended())?
    }

    async fn attempt(
        &self,
        pick: fn(&Statements) -> &Query,
        parameters: &Parameters,
    ) -> Result<Result<Vec<Row>>, Broken> {
        let db = match self.pool.get().await {
            Ok(db) => db,
            Err(PoolError::Backend(e)) => return Ok(Err(e)),
            Err(_) => return Ok(Err(all_busy(self.reading.connections))),
        };
        let parameters: Vec<_> = parameters.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let reading = timeout(self.reading.timeout, pick(&db.statements).rows(&db.client, &parameters)).await;
        match reading {
            Ok(Ok(rows)) => Ok(Ok(rows)),
            Ok(Err(e)) if !is_fatal(&e) => Ok(Err(store_error(&e))),
            Ok(Err(e)) => {
                drop(Object::take(db));
                Err(Broken(store_error(&e)))
            }
            Err(_) => {
                let (location, waiting) = (self.location().clone(), Object::take(db).client.cancel_token());
                drop(tokio::spawn(async move { location.cancel(waiting).await }));
                Err(Broken(read_takes_too_long(self.reading.timeout)))
            }
        }
    }
}

/// Closes idle connections periodically, as long as the pool exists.
async fn close_idle(pool: Pool<Connector>, idle_timeout: Duration) {
    let pool = pool.weak();
    loop {
        tokio::time::sleep(idle_timeout / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        drop(pool.retain(|db, metrics| is_of_use(db, metrics, idle_timeout)));
    }
}
