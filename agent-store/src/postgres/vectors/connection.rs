//! Connections, and transactions over them.

use std::{sync::Arc, time::Duration};

use agent_core::{BoxFuture, Error, ErrorKind, Result, Retry};
use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Pool, PoolError, RecycleError, RecycleResult},
};
use tokio::task::JoinSet;
use tokio_postgres::{Client, IsolationLevel};

use super::{Done, statements::Statements};
use crate::{
    answer::ask,
    postgres::{
        background::Background,
        connect::Location,
        error::{is_conflict, is_fatal, store_error},
    },
};

/// How long a connection of the pool is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a transaction is tried that others were in the way of.
const TRIES: u32 = 5;
/// Keeps two processes from creating the extension at once: "AGVX".
const EXTENSION_LOCK: i64 = 0x4147_5658;
/// From nothing to format 1, and so on; see the journal's.
const MIGRATION: &str = include_str!("schema.sql");

/// Work of a transaction.
type Attempt<'a, T> = BoxFuture<'a, Done<T>>;

/// A pool of connections, which a thread of its own drives.
#[derive(Clone)]
pub(super) struct Connections {
    pool: Pool<Connector>,
    statements: Arc<Statements>,
    thread: Arc<Background<BoxFuture<'static, ()>>>,
}

struct Connector(Location);

impl Manager for Connector {
    type Type = Client;
    type Error = Error;

    async fn create(&self) -> Result<Client> {
        self.0.attach().await
    }

    async fn recycle(&self, client: &mut Client, _: &Metrics) -> RecycleResult<Error> {
        if client.is_closed() { Err(RecycleError::message("closed")) } else { Ok(()) }
    }
}

impl Connections {
    pub(super) async fn open(url: &str, schema: &str, most: usize) -> Result<Self> {
        let location = Location::new(url, schema, PATIENCE)?;
        let thread = Arc::new(Background::start("agent-vectors", async || Ok(()), |(), work| drive(work)).await?);
        let here = location.clone();
        let extension = on(&thread, async move { set_up(&here).await }).await?;
        let statements = Arc::new(Statements::new(&location, extension));
        let pool = Pool::builder(Connector(location)).max_size(most).wait_timeout(Some(PATIENCE));
        let pool = pool.runtime(Runtime::Tokio1).build().expect("the runtime that a timeout needs is named");
        Ok(Self { pool, statements, thread })
    }

    /// Reads as of one moment, once more if the connection broke.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a Statements) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (pool, statements) = (self.pool.clone(), self.statements.clone());
        on(&self.thread, async move { transact(&pool, &statements, true, work).await }).await
    }

    /// Changes all that `work` does, or nothing.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a Statements) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (pool, statements) = (self.pool.clone(), self.statements.clone());
        on(&self.thread, async move { transact(&pool, &statements, false, work).await }).await
    }
}

/// Does work on the thread; it goes on if the caller goes away.
async fn on<T: Send + 'static>(
    thread: &Background<BoxFuture<'static, ()>>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    ask(|reply| thread.push(Box::pin(async move { drop(reply.send(work.await)) }))).await
}

/// Does what comes, side by side, until nothing more can come and all is done.
async fn drive(mut work: tokio::sync::mpsc::UnboundedReceiver<BoxFuture<'static, ()>>) {
    let mut running = JoinSet::new();
    while let Some(work) = work.recv().await {
        drop(running.spawn(work));
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

async fn transact<T>(
    pool: &Pool<Connector>,
    statements: &Statements,
    reads: bool,
    work: impl for<'a> Fn(&'a Client, &'a Statements) -> Attempt<'a, T>,
) -> Result<T> {
    for attempt in 1.. {
        let mut client = pool.get().await.map_err(|e| match e {
            PoolError::Backend(e) => e,
            _ => busy(pool.status().max_size),
        })?;
        let isolation = if reads { IsolationLevel::RepeatableRead } else { IsolationLevel::ReadCommitted };
        let done: Done<T> = async {
            let begin = client.build_transaction().isolation_level(isolation).read_only(reads);
            let transaction = begin.start().await?;
            let done = work(transaction.client(), statements).await?;
            match &done {
                Ok(_) => transaction.commit().await?,
                Err(_) => transaction.rollback().await?,
            }
            Ok(done)
        }
        .await;
        match done {
            Ok(done) => return done,
            Err(e) if is_conflict(&e) && attempt < TRIES => {}
            // What was not acknowledged may have been done: only reads are done again.
            Err(e) if is_fatal(&e) && reads && attempt == 1 => {}
            Err(e) => return Err(store_error(&e)),
        }
    }
    unreachable!("the last attempt returns")
}

/// Others use all connections.
fn busy(connections: usize) -> Error {
    let message = format!("all {connections} connections to the database are busy: connect with more");
    Error::new(ErrorKind::Store, message).with_retry(Retry::Temporary(None))
}

/// Creates the extension and the tables if they are missing; gives the extension's schema, as it stands in SQL.
async fn set_up(location: &Location) -> Result<String> {
    let mut client = location.attach().await?;
    let extension = extension(&mut client).await.map_err(|e| store_error(&e))?.ok_or_else(|| {
        let message =
            "the database has no pgvector: install it on the server (Debian: postgresql-17-pgvector or the like)";
        Error::new(ErrorKind::Store, message).with_retry(Retry::Permanent)
    })?;
    location.migrate(&[&MIGRATION.replace("{extension}", &extension)]).await?;
    Ok(extension)
}

async fn extension(client: &mut Client) -> Result<Option<String>, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({EXTENSION_LOCK})")).await?;
    let find = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
                WHERE extname = 'vector'";
    if let Some(row) = transaction.query_typed(find, &[]).await?.first() {
        return row.try_get(0);
    }
    let installed = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'";
    if transaction.query_typed(installed, &[]).await?.is_empty() {
        return Ok(None);
    }
    transaction.batch_execute("CREATE EXTENSION vector").await?;
    let created = transaction.query_typed(find, &[]).await?;
    transaction.commit().await?;
    created.first().map(|row| row.try_get(0)).transpose()
}
