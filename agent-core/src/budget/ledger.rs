//! Ledgers: storage of accounts.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::{Amounts, Caps};
use crate::{error::Result, future::nothing};

/// Content of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Balance {
    /// Used and settled amounts.
    pub settled: Amounts,
    /// Amounts reserved for running calls.
    pub reserved: Amounts,
}

impl Balance {
    /// Creates a balance with these amounts.
    pub fn new(settled: Amounts, reserved: Amounts) -> Self {
        Self { settled, reserved }
    }

    /// Reserves `wanted` if it fits under `caps`.
    pub(super) fn reserve(&mut self, caps: &Caps, wanted: Amounts) -> bool {
        let fits = caps.refusal(self.settled.plus(self.reserved), wanted).is_none();
        if fits {
            self.reserved = self.reserved.plus(wanted);
        }
        fits
    }

    /// Settles a reservation.
    pub(super) fn settle(&mut self, reserved: Amounts, used: Amounts) {
        self.reserved = self.reserved.minus(reserved);
        self.settled = self.settled.plus(used);
    }
}

/// Store of named accounts, from which [`Budget`](super::Budget)s reserve amounts before they are
/// used.
///
/// Accounts store no caps; each reservation passes the caps to enforce. An unused account is empty.
///
/// An implementation that several processes share releases nothing when a process dies: its
/// reservations are settled as used, since the actual usage is unknown.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Returns the content of the account.
    async fn balance(&self, account: &str) -> Result<Balance>;

    /// Atomically reserves `wanted` if it fits under `caps` together with the settled and reserved
    /// amounts ([`Caps::refusal`]). Returns the receipt, or `None` if it does not fit now.
    async fn reserve(&self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>>;

    /// Settles a reservation and counts `used`. An unknown receipt changes nothing.
    ///
    /// The settlement is handed over when this method is called, even if the future is not awaited;
    /// the future resolves when it is durable.
    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>>;

    /// Atomically reserves `wanted` in all of these accounts, each under its caps, or in none. The
    /// default implementation reserves in one account after the other, and releases the earlier ones
    /// if a later one refuses; a ledger that other processes share overrides it with one
    /// transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the ledger failed; nothing is reserved then.
    ///
    /// # Cancellation safety
    /// If the future is dropped, nothing stays reserved.
    async fn reserve_all(&self, accounts: &[(Arc<str>, Caps)], wanted: Amounts) -> Result<Reserved> {
        let release = |account: &str, receipt| drop(self.settle(account, receipt, Amounts::none()));
        let mut held = Held { release, accounts, receipts: Vec::with_capacity(accounts.len()) };
        for (at, (account, caps)) in accounts.iter().enumerate() {
            match self.reserve(account, caps, wanted).await? {
                Some(receipt) => held.receipts.push(receipt),
                None => return Ok(Reserved::RefusedBy(at)),
            }
        }
        Ok(Reserved::All(std::mem::take(&mut held.receipts)))
    }

    /// Settles reservations in several accounts with the same amounts. Like
    /// [`settle`](Self::settle), it is handed over when this method is called.
    fn settle_all(&self, reservations: &[(Arc<str>, u64)], used: Amounts) -> BoxFuture<'static, Result<()>> {
        let settle = |(account, receipt): &(Arc<str>, u64)| self.settle(account, *receipt, used);
        let settling: Vec<_> = reservations.iter().map(settle).collect();
        Box::pin(async move {
            for settling in settling {
                settling.await?;
            }
            Ok(())
        })
    }

    /// Deletes the accounts whose names begin with `prefix` and sort before `oldest`, except those
    /// with open reservations: their windows are over, and no budget opens them again. The request
    /// is handed over when this method is called; a failure is only logged, since the next day
    /// repeats it.
    fn forget(&self, prefix: &str, oldest: &str);

    /// Waits until the account may have changed. Changes since this call count, even if the future
    /// is polled later.
    ///
    /// Default: 100 milliseconds, since other processes send no notification.
    fn changed(&self, account: &str) -> BoxFuture<'_, ()> {
        let _ = account;
        Box::pin(tokio::time::sleep(Duration::from_millis(100)))
    }
}

/// Outcome of a reservation in several accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The receipts, in the order of the accounts.
    All(Vec<u64>),
    /// Nothing is reserved: the account at this position does not have enough left.
    RefusedBy(usize),
}

/// Reservations in the first accounts of a list, which are released when dropped.
struct Held<'a, R: FnMut(&str, u64)> {
    release: R,
    accounts: &'a [(Arc<str>, Caps)],
    receipts: Vec<u64>,
}

impl<R: FnMut(&str, u64)> Drop for Held<'_, R> {
    fn drop(&mut self) {
        for ((account, _), receipt) in self.accounts.iter().zip(&self.receipts) {
            (self.release)(account, *receipt);
        }
    }
}

#[async_trait]
impl<L: Ledger + ?Sized> Ledger for Arc<L> {
    async fn balance(&self, account: &str) -> Result<Balance> {
        (**self).balance(account).await
    }

    async fn reserve(&self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>> {
        (**self).reserve(account, caps, wanted).await
    }

    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>> {
        (**self).settle(account, receipt, used)
    }

    async fn reserve_all(&self, accounts: &[(Arc<str>, Caps)], wanted: Amounts) -> Result<Reserved> {
        (**self).reserve_all(accounts, wanted).await
    }

    fn settle_all(&self, reservations: &[(Arc<str>, u64)], used: Amounts) -> BoxFuture<'static, Result<()>> {
        (**self).settle_all(reservations, used)
    }

    fn forget(&self, prefix: &str, oldest: &str) {
        (**self).forget(prefix, oldest);
    }

    fn changed(&self, account: &str) -> BoxFuture<'_, ()> {
        (**self).changed(account)
    }
}

/// In-memory ledger of one process.
#[derive(Default)]
pub struct MemoryLedger {
    accounts: Mutex<BTreeMap<String, AccountState>>,
    changed: Notify,
}

#[derive(Default)]
struct AccountState {
    balance: Balance,
    /// Open reservations, by receipt.
    open: HashMap<u64, Amounts>,
    last: u64,
}

impl MemoryLedger {
    /// Creates an empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    fn accounts(&self) -> MutexGuard<'_, BTreeMap<String, AccountState>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn balance(&self, account: &str) -> Result<Balance> {
        Ok(self.accounts().get(account).map(|account| account.balance).unwrap_or_default())
    }

    async fn reserve(&self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>> {
        let mut accounts = self.accounts();
        let account = match accounts.get_mut(account) {
            Some(account) => account,
            None => accounts.entry(account.to_owned()).or_default(),
        };
        if !account.balance.reserve(caps, wanted) {
            return Ok(None);
        }
        account.last += 1;
        account.open.insert(account.last, wanted);
        Ok(Some(account.last))
    }

    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>> {
        if let Some(account) = self.accounts().get_mut(account)
            && let Some(reserved) = account.open.remove(&receipt)
        {
            account.balance.settle(reserved, used);
        }
        self.changed.notify_waiters();
        nothing()
    }

    fn forget(&self, prefix: &str, oldest: &str) {
        let mut accounts = self.accounts();
        let past = accounts.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let past = past.take_while(|(name, _)| name.as_str() < oldest && name.starts_with(prefix));
        let past: Vec<_> = past.filter(|(_, account)| account.open.is_empty()).map(|(name, _)| name.clone()).collect();
        past.iter().for_each(|name| drop(accounts.remove(name)));
    }

    fn changed(&self, _: &str) -> BoxFuture<'_, ()> {
        Box::pin(self.changed.notified())
    }
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger").field("accounts", &self.accounts().len()).finish()
    }
}
