//! Journal in a PostgreSQL database: [`PostgresJournal`].

mod background;
mod builder;
mod connect;
mod connections;
mod delete;
mod error;
mod job;
mod ledger;
mod migrate;
mod news;
mod project;
mod query;
mod queue;
mod read;
mod readers;
mod relay;
mod renewals;
mod statements;
mod summaries;
mod thread;
mod tls;
mod upkeep;
mod url;
mod vectors;
mod writer;

use std::{fmt, sync::Arc};

use agent_core::{
    Journal, Result, async_trait,
    journal::{
        Entry, IndexCache, JournalWriter, RunQuery, RunSummary, SessionInfo, SessionQuery, SessionSummary, SharedIndex,
    },
};

pub use self::{
    builder::PostgresBuilder,
    ledger::PostgresLedger,
    queue::{PostgresQueue, PostgresQueueBuilder},
    relay::PostgresRelay,
    vectors::PostgresVectorStore,
};
use self::{
    delete::Delete,
    job::Job,
    news::News,
    readers::Readers,
    thread::JournalThread,
    writer::{Lease, PostgresWriter},
};
use crate::{answer::ask, error::thread_ended, project::Searched, stats::Stats};

/// Journal in a PostgreSQL database, for processes on several machines. Cheap to clone; clones
/// share one journal.
///
/// Requires PostgreSQL 12 or newer and a database in UTF-8. Independently of the number of runs,
/// one connection writes, one renews the leases, and a few read. An append is acknowledged when its transaction is on the
/// server's disk (see [`Durability`](crate::Durability)). Appends that arrive while a transaction
/// is in flight share the next one, which is pipelined: a thousand runs cost a few round trips
/// instead of a thousand.
///
/// A writer holds a lease on its session and agent, which is renewed. Other processes get
/// [`Busy`](agent_core::ErrorKind::Busy) for a held pair, and take it over once its holder has been
/// dead for the duration of the lease, by the server's clock. If the holder was only suspended, its
/// next append fails and writes nothing: each append checks its lease in its own transaction. A run
/// that already had an acknowledgement fails before its next effect, because it verifies the lease
/// first if the lease may have expired by the process's clock, which continues while a process is
/// stopped, but not while its machine sleeps.
///
/// Lost connections are reopened. Appends in flight fail, since their outcome is unknown; and a
/// writer whose append failed rejects all further appends: drop it, open the session again and read
/// its entries.
///
/// Dropping the last handle (journal or writer) waits until all accepted appends are written. The
/// journal can be read at any time with `psql -c 'select * from agent_journal.history'`.
///
/// A read that times out, or whose connection breaks, is retried once over a new connection. TCP
/// keepalive probes every 30 seconds prevent firewalls from silently dropping idle connections,
/// unless the URL's `keepalives_idle`, `keepalives_interval`, `keepalives_retries` or
/// `tcp_user_timeout` say otherwise.
///
/// # Poolers
///
/// The journal and the [ledger](PostgresLedger) keep no state in the server's session: no settings,
/// no locks beyond a transaction, no `LISTEN`. They therefore work behind a pooler in transaction
/// mode (PgBouncer with `pool_mode = transaction`) and need no direct connection. Prepared
/// statements are the exception: write `pooled=true` into the URL to disable them, unless the
/// pooler supports them, as PgBouncer does from 1.21 on with `max_prepared_statements`. The ledger
/// uses none; a [queue](PostgresQueue) does not `LISTEN` with `pooled=true`.
///
/// # Migrations
///
/// Connecting creates the tables, and migrates those of an earlier release: each step in a
/// transaction of its own, which waits at most five seconds for a lock. With `migrate=false` in the
/// URL, tables of an older format are rejected instead. `agent store migrate` then migrates them,
/// as a user that may change tables, before the release is started; the same holds for the
/// [queue](PostgresQueue) and the [ledger](PostgresLedger).
///
/// # Encryption
///
/// The URL's `sslmode` has the meaning that libpq gives it, except that a connection that should be
/// encrypted never falls back to plain text:
///
/// | `sslmode` | encrypted | check of the server's certificate | protects against |
/// |---|---|---|---|
/// | `disable` | never | | nothing |
/// | `prefer`, the default | if the server offers it | none | passive eavesdropping |
/// | `require` | always | none, unless there is a `sslrootcert`: then as `verify-ca` | passive eavesdropping |
/// | `verify-ca` | always | signed by a trusted authority | also active interception, if the authority is your own |
/// | `verify-full` | always | signed by a trusted authority, for the URL's host | also active interception |
///
/// `sslrootcert` names a PEM file of trusted certificate authorities; without it, and for `system`,
/// those that browsers trust are used. Use `verify-full` across a network that is not your own. A
/// Unix socket is never encrypted: modes from `require` on reject it.
///
/// ```no_run
/// use agent_store::PostgresJournal;
///
/// # async fn example() -> Result<(), agent_core::Error> {
/// let url = "postgres://agent@db.example.com/agents?sslmode=verify-full&sslrootcert=/etc/agents/authority.pem";
/// let journal = PostgresJournal::connect(url).await?;
/// # drop(journal);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresJournal(Arc<Inner>);

struct Inner {
    schema: String,
    readers: Readers,
    news: News,
    blob_bytes: usize,
    thread: Arc<JournalThread>,
    indexes: IndexCache,
    searched: Searched,
}

impl PostgresJournal {
    /// Connects to the database at `url`, with the defaults of [`PostgresBuilder`]:
    /// `postgres://user:password@host/database`, or libpq's `host=.. user=.. dbname=..`. See
    /// [above](Self#encryption) for `sslmode`.
    ///
    /// # Errors
    /// The errors of [`PostgresBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// Returns a builder for a journal at `url`.
    pub fn builder(url: &str) -> PostgresBuilder {
        PostgresBuilder::new(url)
    }

    /// Rebuilds the projection of sessions that lack it.
    async fn project(&self) -> Result<()> {
        const PAGE: i64 = 100;
        let search = async {
            loop {
                let names = self.0.readers.unprojected(PAGE).await?;
                if names.is_empty() {
                    return Ok(());
                }
                let location = self.0.readers.location().clone();
                let rebuilding =
                    self.0.thread.runtime().spawn(async move { project::rebuild(&location, &names).await });
                rebuilding.await.map_err(|_| thread_ended())??;
            }
        };
        self.0.searched.search(search).await
    }

    /// Returns the write statistics since this handle's journal was opened.
    pub fn stats(&self) -> Stats {
        self.0.thread.stats()
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        let (session, agent) = (Arc::<str>::from(session), Arc::<str>::from(agent));
        let opening = ask(|reply| {
            // The thread creates the lease, not the caller, which may have been cancelled: the
            // lease is then released immediately.
            let (queue, held) = (self.0.thread.queue()?, session.clone());
            let deliver = Box::new(move |epoch: Result<i64>| {
                drop(reply.send(epoch.map(|epoch| Lease::new(epoch, held, queue))));
            });
            self.0.thread.push(Job::Open { session, agent: agent.clone(), deliver })
        });
        let lease = opening.await?;
        Ok(Arc::new(PostgresWriter::new(lease, agent, self.0.blob_bytes, self.0.thread.clone())))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.0.readers.entries(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.0.readers.sessions().await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        self.0.readers.list(prefix, after, limit).await
    }

    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        self.0.readers.anchor(session).await
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        self.0.indexes.whole_index(self, session).await
    }

    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.0.indexes.index(self, session).await
    }

    async fn has_run(&self, session: &str, run: &str) -> Result<bool> {
        self.0.readers.has_run(session, run).await
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        self.0.readers.newest(session).await
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        self.0.readers.info(session).await
    }

    async fn recent(&self, query: &SessionQuery) -> Result<Vec<SessionSummary>> {
        self.project().await?;
        self.0.readers.recent(query).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        self.project().await?;
        self.0.readers.runs(query).await
    }

    /// Polls ten times a second, and less often where a query is slow, down to once a second; one
    /// query serves all waiters of this process.
    async fn news(&self, session: &str, after: u64) -> Result<()> {
        self.0.news.after(session, after).await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        ask(|reply| self.0.thread.delete(Delete { session: session.into(), reply })).await
    }
}

impl fmt::Debug for PostgresJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresJournal").field("schema", &self.0.schema).finish_non_exhaustive()
    }
}
