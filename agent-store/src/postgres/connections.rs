//! Connections, and transactions over them.

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

/// How long a connection of the pool is waited for, and a lost one tried again.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// A transaction whose client is not heard of is ended after these milliseconds, so that a machine that was lost or stopped is not in the way of others
/// with what it locked.
pub(super) const SETTINGS: &str = "SET LOCAL idle_in_transaction_session_timeout = 10000";
/// How often a transaction is tried that others were in the way of.
const TRIES: u32 = 5;

/// What a transaction gives: an error of the database's undoes it and may be tried again, one of ours undoes it.
pub(super) type Done<T> = Result<Result<T>, tokio_postgres::Error>;

/// Work of a transaction.
pub(super) type Attempt<'a, T> = BoxFuture<'a, Done<T>>;

/// A pool of connections, which a thread of its own drives, and what is asked over them.
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

/// What is done again if the connection broke on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It sees one moment, and changes nothing.
    Read,
    /// It must not be done twice.
    Once,
    /// It comes to the same however often it is done.
    Again,
}

impl<S: Send + Sync + 'static> Connections<S> {
    /// At most so many connections, over which is asked what `set_up` gives.
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
        let pool = pool.runtime(Runtime::Tokio1).build().expect("the runtime that a timeout needs is named");
        Ok(Self { pool, statements, thread })
    }

    /// What drives the connections, until the last clone is gone.
    pub(super) fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    /// Reads as of one moment, once more if the connection broke.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.transact(Kind::Read, work).await
    }

    /// Changes all that `work` does, or nothing.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'a> Fn(&'a Client, &'a S) -> Attempt<'a, T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.transact(Kind::Once, work).await
    }

    /// As [`write`](Self::write), once more if the connection broke: the work comes to the same however often it is done.
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
            // Both are sent at once.
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
            // The connection was broken before.
            Err(e) if is_fatal(&e) && !is_begun && attempt < TRIES => {}
            // What was not acknowledged may have been done.
            Err(e) if is_fatal(&e) && kind != Kind::Once && attempt == 1 => {}
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
