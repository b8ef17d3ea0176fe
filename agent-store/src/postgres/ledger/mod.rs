//! Budget accounts shared by processes on several machines: [`PostgresLedger`].

mod accounts;
mod change;

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{
    BoxFuture, Caps, Error, Result, async_trait,
    budget::{Amounts, Balance, Ledger, Reserved},
};
use tokio::sync::oneshot;

use self::{
    accounts::{Accounts, Work},
    change::Change,
};
use super::{background::Background, connect::Location};
use crate::{answer::ask, error::not_forgotten};

/// Budget accounts in a PostgreSQL database, shared by all processes that connect to it.
///
/// Each reservation is renewed while its process lives. Reservations of a dead process are settled
/// in full after a timeout by the server's clock, since their real usage is unknown; so is a
/// reservation whose settlement could not reach the database. A settlement is durable when its
/// future completes. Lost connections are reopened.
///
/// Requirements and encryption are those of a [`PostgresJournal`](crate::PostgresJournal), and both
/// can share a database: the ledger has a schema of its own.
///
/// ```no_run
/// use agent_core::{Budget, Caps, Window};
/// use agent_store::PostgresLedger;
///
/// # async fn example() -> Result<(), agent_core::Error> {
/// let ledger = PostgresLedger::connect("postgres://agent@localhost/agents").await?;
/// let budget = Budget::builder().window(Window::Day, Caps::default().tokens(1_000_000)).ledger(ledger).build()?;
/// # drop(budget);
/// # Ok(()) }
/// ```
pub struct PostgresLedger {
    schema: String,
    thread: Background<Work>,
}

impl PostgresLedger {
    /// Shortest timeout of a dead process: a single network delay must not make a renewal late.
    const SOONEST: Duration = Duration::from_secs(1);

    /// Connects to the database at `url`, and creates the tables in the schema `agent_ledger` if
    /// missing. Reservations of a dead process are settled after 30 seconds.
    ///
    /// # Errors
    /// The errors of [`connect_with`](Self::connect_with).
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, "agent_ledger", Duration::from_secs(30)).await
    }

    /// Like [`connect`](Self::connect), with another schema and another time, of at least a second,
    /// after which a process that does not renew its reservations counts as dead.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the database cannot be reached,
    /// rejects the connection, or has tables of a newer release;
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an invalid URL or time. No message
    /// contains the URL.
    pub async fn connect_with(url: &str, schema: &str, dead_after: Duration) -> Result<Self> {
        if dead_after < Self::SOONEST {
            let least = Self::SOONEST;
            return Err(Error::config(format!("dead_after of {dead_after:?} is too short: set {least:?} or more")));
        }
        let location = Location::new(url, schema, dead_after / 3)?;
        let begin = move || Accounts::open(location, dead_after);
        let thread = Background::start("agent-ledger", begin, Accounts::run).await?;
        Ok(Self { schema: schema.to_owned(), thread })
    }

    /// Enqueues work on the thread immediately; the future resolves to its result.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> BoxFuture<'static, Result<T>> {
        ask(|reply| self.thread.push(work(reply)))
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn balance(&self, account: &str) -> Result<Balance> {
        let account = account.to_owned();
        self.ask(|reply| Work::Balance { account, reply }).await
    }

    async fn reserve(&self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>> {
        let reserved = self.reserve_all(&[(account.into(), *caps)], wanted).await?;
        Ok(match reserved {
            Reserved::All(receipts) => receipts.first().copied(),
            Reserved::RefusedBy(_) => None,
        })
    }

    async fn reserve_all(&self, accounts: &[(Arc<str>, Caps)], wanted: Amounts) -> Result<Reserved> {
        let accounts = accounts.to_vec();
        self.ask(|reply| Work::Change(Change::Reserve { accounts, wanted, reply })).await
    }

    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>> {
        self.settle_all(&[(account.into(), receipt)], used)
    }

    fn settle_all(&self, reservations: &[(Arc<str>, u64)], used: Amounts) -> BoxFuture<'static, Result<()>> {
        let reservations = reservations.to_vec();
        self.ask(|reply| Work::Change(Change::Settle { reservations, used, reply }))
    }

    fn forget(&self, prefix: &str, oldest: &str) {
        not_forgotten(self.thread.push(Work::Forget { prefix: prefix.to_owned(), oldest: oldest.to_owned() }));
    }
}

impl fmt::Debug for PostgresLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLedger").field("schema", &self.schema).finish_non_exhaustive()
    }
}
