//! [`PostgresJournal`]: sessions in a PostgreSQL database.

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
mod query;
mod queue;
mod read;
mod readers;
mod statements;
mod thread;
mod tls;
mod upkeep;
mod url;
mod vectors;
mod writer;

use std::{fmt, sync::Arc};

use agent_core::{
    Journal, Result, async_trait,
    journal::{Entry, IndexCache, JournalWriter, SessionInfo, SharedIndex},
};

pub use self::{
    builder::PostgresBuilder,
    ledger::PostgresLedger,
    queue::{PostgresQueue, PostgresQueueBuilder},
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
use crate::{answer::ask, stats::Stats};

/// Sessions in a PostgreSQL database, for processes on several machines. Cheap to clone; every clone is the same journal.
///
/// It needs PostgreSQL 12 or newer and a database in UTF-8. However many runs there are, one connection writes and a few read. An
/// append is acknowledged when its transaction is on the server's disk (see [`Durability`](crate::Durability)). What was handed over
/// while the last one was on its way shares the next one, and all of it is sent at once: a thousand runs cost a few round
/// trips and not a thousand.
///
/// A writer holds a lease on its session and agent, which is renewed. Other processes find the pair
/// [`Busy`](agent_core::ErrorKind::Busy), and take it over when its holder has been dead for the lease's time, by the
/// server's clock. A holder that was only asleep then fails at its next append, which writes nothing: each looks for its
/// lease in its own transaction. And a run that had its acknowledgement fails before the effect: it asks first, if its lease may have run out by
/// the process's clock, which goes on while a process is stopped, and not while its machine sleeps.
///
/// A lost connection is made again. Appends that were on their way fail, since nobody can say whether they were kept; and a
/// writer whose append failed refuses all that follow: drop it, open the session again and read what is there.
///
/// Dropping the last handle (journal or writer) waits until everything handed over is written. The journal can be read at
/// any time with `psql -c 'select * from agent_journal.history'`.
///
/// A read that was not answered in time, or whose connection broke, is tried once more over a new connection. The server is asked
/// now and then whether it is still there, so that no firewall forgets a connection unseen: every 30 seconds, unless the URL's
/// `keepalives_idle`, `keepalives_interval`, `keepalives_retries` or `tcp_user_timeout` say otherwise.
///
/// # Poolers
///
/// The journal and the [ledger](PostgresLedger) keep nothing in the server's session: no settings, no locks beyond a transaction, no
/// `LISTEN`. So they work behind a pooler that gives each transaction another connection (PgBouncer with
/// `pool_mode = transaction`), and none of their work needs a direct one. What such a pooler may not know is prepared statements:
/// write `pooled=true` into the URL, and nothing is prepared, unless yours follows them, as PgBouncer does from 1.21 on with
/// `max_prepared_statements`. The ledger has none; a [queue](PostgresQueue) does not `LISTEN` then.
///
/// # Encryption
///
/// The URL's `sslmode` says what libpq's does, but that a connection which was to be encrypted is never made without:
///
/// | `sslmode` | encrypted | the server's certificate | holds against |
/// |---|---|---|---|
/// | `disable` | never | | nobody |
/// | `prefer`, the default | if the server offers it | is not looked at | those who only listen |
/// | `require` | always | is not looked at, unless there is a `sslrootcert`: then as `verify-ca` | those who only listen |
/// | `verify-ca` | always | is of a trusted authority | also those who stand between, if the authority is your own |
/// | `verify-full` | always | is of a trusted authority, and of the URL's host | also those who stand between |
///
/// `sslrootcert` names a file of the authorities that are trusted, in PEM; without it, and for `system`, they are those that
/// browsers trust. Across a network that is not your own, use `verify-full`. A Unix socket is never encrypted: modes from
/// `require` on refuse it.
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
}

impl PostgresJournal {
    /// Connects to the database at `url`, with the defaults of [`PostgresBuilder`]: `postgres://user:password@host/database`,
    /// or libpq's `host=.. user=.. dbname=..`. See [above](Self#encryption) for its `sslmode`.
    ///
    /// # Errors
    /// As [`PostgresBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// Settings for a journal at `url`.
    pub fn builder(url: &str) -> PostgresBuilder {
        PostgresBuilder::new(url)
    }

    /// What was written since this handle's journal was opened.
    pub fn stats(&self) -> Stats {
        self.0.thread.stats()
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        let (session, agent) = (Arc::<str>::from(session), Arc::<str>::from(agent));
        let opening = ask(|reply| {
            // The lease is made by the thread, and not here, where the caller may have gone away: it is then given back at once.
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

    /// Looks ten times a second, and less often where a look takes long, down to once a second: one look for all that this process waits for.
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
