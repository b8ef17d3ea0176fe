//! Budget accounts in an SQLite file: [`SqliteLedger`].

mod tables;
mod thread;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent_core::{
    BoxFuture, Caps, Result, async_trait,
    budget::{Amounts, Balance, Ledger, Reserved},
};

use self::{tables::Tables, thread::LedgerThread};
use crate::{answer::ask, error::not_forgotten};

/// Budget accounts in an SQLite file, shared by all processes that open it.
///
/// A process renews its reservations while it lives. Reservations of a dead process are settled in
/// full after a timeout, since their real usage is unknown. A settlement is durable when its future
/// completes.
///
/// Keep it in a file beside the journal's, not in the same one.
///
/// ```
/// use agent_core::{Budget, Caps, budget::Amounts};
/// use agent_store::SqliteLedger;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("budget.db");
/// let shared = |path| -> agent_core::Result<Budget> {
///     Budget::builder().caps(Caps::default().tokens(100)).ledger(SqliteLedger::open(path)?).build()
/// };
/// let (here, there) = (shared(&path)?, shared(&path)?);
/// here.reserve(Amounts::none().tokens(80)).await?.settle(Amounts::none().tokens(60)).await?;
/// assert!(there.reserve(Amounts::none().tokens(50)).await.is_err(), "40 are left");
/// # Ok(())
/// # }
/// ```
pub struct SqliteLedger {
    path: PathBuf,
    thread: Arc<LedgerThread>,
}

impl SqliteLedger {
    /// Opens the file; creates it if missing. Reservations of a dead process are settled after 30
    /// seconds.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the file cannot be opened or belongs
    /// to another program.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Duration::from_secs(30))
    }

    /// Like [`open`](Self::open), with the time after which a process that does not renew its
    /// reservations counts as dead.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, dead_after: Duration) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let tables = Tables::open(&path, dead_after)?;
        Ok(Self { path, thread: Arc::new(LedgerThread::start(tables, dead_after / 3)?) })
    }

    /// Enqueues work on the thread immediately; the future resolves to its result.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tables) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        ask(|reply| self.thread.push(Box::new(move |tables| drop(reply.send(work(tables))))))
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn balance(&self, account: &str) -> Result<Balance> {
        let account = account.to_owned();
        self.ask(move |tables| tables.balance(&account)).await
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
        self.ask(move |tables| tables.reserve(&accounts, wanted)).await
    }

    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>> {
        self.settle_all(&[(account.into(), receipt)], used)
    }

    fn settle_all(&self, reservations: &[(Arc<str>, u64)], used: Amounts) -> BoxFuture<'static, Result<()>> {
        let reservations = reservations.to_vec();
        self.ask(move |tables| tables.settle(&reservations, used))
    }

    fn forget(&self, prefix: &str, oldest: &str) {
        let (prefix, oldest) = (prefix.to_owned(), oldest.to_owned());
        let forget = move |tables: &mut Tables| not_forgotten(tables.forget(&prefix, &oldest));
        not_forgotten(self.thread.push(Box::new(forget)));
    }
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.path).finish_non_exhaustive()
    }
}
