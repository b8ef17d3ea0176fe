//! Connection pool and transactions.

use std::{sync::Arc, time::Duration};

use agent_core::{BoxFuture, Error, ErrorKind, Result, Retry};
use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Pool, PoolError, RecycleError, RecycleResult},
};
use futures::future::try_join;
use tokio::{runtime::Handle, task::JoinSet};
use tokio_postgres::{Client, IsolationLevel};

use super::{
    background::Background,
    connect::Location,
    error::{is_conflict, is_fatal, store_error},
};
use crate::answer::ask;

/// Timeout for a free connection of the pool, and time during which a lost connection is retried.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The server ends a transaction whose client is silent for 10 seconds, so that the locks of a lost
/// or suspended machine do not block others.
pub(super) const SETTINGS: &str = "SET LOCAL idle_in_transaction_session_timeout = 10000";
/// Maximum number of attempts at a transaction that conflicts with others.
const TRIES: u32 = 5;

/// Result of a transaction: a database error rolls it back and may lead to a retry, an error of
/// ours only rolls it back.
pub(super) type Done<T> = Result<Result<T>, tokio_postgres::Error>;

/// Work of one attempt at a transaction.
pub(super) type Attempt<'a, T> = BoxFuture<'a, Done<T>>;

/// Connection pool, driven by a thread of its own, with the statements to execute.
pub(super) struct Connections<S> {
    pool: Pool<Connector>,
    statements: Arc<S>,
    thread: Arc<Background<BoxFuture<'static, ()>>>,
}

impl<S> Clone for Connections<S> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone(), statements: self.statements.clone(), thread: self.thread.clone() }
    }
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

/// Retry policy after a broken connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Consistent read without changes.
    Read,
    /// Not idempotent.
    Once,
    /// Idempotent write.
    Again,
}

impl<S: Send + Sync + 'static> Connections<S> {
    /// Opens a pool of limited size, with the statements that `set_up` returns.
    pub(super) async fn open<F>(
        location: Location,
        thread: &str,
        most: usize,
        set_up: impl FnOnce(Location) -> F,
    ) -> Result<Self>
    where
        F: Future<Output = Result<S>> + Send + 'static,
    {
        let thread = Arc::new(Background::start(thread, async || Ok(()), |(), work| drive(work)).await?);
        let statements = Arc::new(on(&thread, set_up(location.clone())).await?);
        let pool = Pool::builder(Connector(location)).max_size(most).wait_timeout(Some(PATIENCE));
        let pool = pool.runtime(Runtime::Tokio1).build().expect("a runtime is set for the timeouts");
        Ok(Self { pool, statements, thread })
    }

    /// Returns the runtime that drives the connections, until the last clone is dropped.
    pub(super) fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    /// Reads a consistent snapshot; retried once if the connection broke.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.transact(Kind::Read, work).await
    }

    /// Applies all changes of `work`, or none.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.transact(Kind::Once, work).await
    }

    /// Like [`write`](Self::write), retried once if the connection broke: the work must be
    /// idempotent.
    pub(super) async fn write_again<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.transact(Kind::Again, work).await
    }

    async fn transact<T: Send + 'static>(
        &self,
        kind: Kind,
        work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (pool, statements) = (self.pool.clone(), self.statements.clone());
        on(&self.thread, async move { transact(&pool, &*statements, kind, work).await }).await
    }
}

/// Runs work on the thread; the work continues if the caller is cancelled.
async fn on<T: Send + 'static>(
    thread: &Background<BoxFuture<'static, ()>>,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    ask(|reply| thread.push(Box::pin(async move { drop(reply.send(work.await)) }))).await
}

/// Runs all incoming work concurrently, until the queue is closed and all work is done.
async fn drive(mut work: tokio::sync::mpsc::UnboundedReceiver<BoxFuture<'static, ()>>) {
    let mut running = JoinSet::new();
    while let Some(work) = work.recv().await {
        drop(running.spawn(work));
        while running.try_join_next().is_some() {}
    }
    while running.join_next().await.is_some() {}
}

async fn transact<S, T>(
    pool: &Pool<Connector>,
    statements: &S,
    kind: Kind,
    work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T>,
) -> Result<T> {
    let reads = kind == Kind::Read;
    for attempt in 1.. {
        let mut client = pool.get().await.map_err(|e| match e {
            PoolError::Backend(e) => e,
            _ => busy(pool.status().max_size),
        })?;
        let isolation = if reads { IsolationLevel::RepeatableRead } else { IsolationLevel::ReadCommitted };
        let mut is_begun = false;
        let done: Done<T> = async {
            let begin = client.build_transaction().isolation_level(isolation).read_only(reads);
            let transaction = begin.start().await?;
            is_begun = true;
            // Pipelined: both are sent at once.
            let (settings, work) = (transaction.batch_execute(SETTINGS), work(transaction.client(), statements));
            let ((), done) = try_join(settings, work).await?;
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
            // The connection was already broken before.
            Err(e) if is_fatal(&e) && !is_begun && attempt < TRIES => {}
            // Work without an acknowledgement may have been done.
            Err(e) if is_fatal(&e) && kind != Kind::Once && attempt == 1 => {}
            Err(e) => return Err(store_error(&e)),
        }
    }
    unreachable!("the last attempt returns")
}

/// All connections are in use.
fn busy(connections: usize) -> Error {
    let message = format!("all {connections} connections to the database are busy: raise the number of connections");
    Error::new(ErrorKind::Store, message).with_retry(Retry::Temporary(None))
}
