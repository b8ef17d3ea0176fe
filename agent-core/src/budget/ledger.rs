//! Where accounts are kept.

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

/// What an account holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Balance {
    /// Used, and settled.
    pub settled: Amounts,
    /// Set aside for calls under way.
    pub reserved: Amounts,
}

impl Balance {
    /// An account with these amounts.
    pub fn new(settled: Amounts, reserved: Amounts) -> Self {
        Self { settled, reserved }
    }

    /// Sets `wanted` aside if it fits under `caps`.
    pub(super) fn reserve(&mut self, caps: &Caps, wanted: Amounts) -> bool {
        let fits = caps.refusal(self.settled.plus(self.reserved), wanted).is_none();
        if fits {
            self.reserved = self.reserved.plus(wanted);
        }
        fits
    }

    /// Ends a reservation.
    pub(super) fn settle(&mut self, reserved: Amounts, used: Amounts) {
        self.reserved = self.reserved.minus(reserved);
        self.settled = self.settled.plus(used);
    }
}

/// Accounts by name, in which amounts are set aside before they are used: those that [`Budget`](super::Budget)s draw on.
///
/// Caps are not kept with the account: whoever reserves brings his own. An account that nobody used yet is empty.
///
/// An implementation that several processes share gives back nothing of a process that died: what it had set aside is
/// settled as used, since nobody knows how much of it was.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// What the account holds.
    async fn balance(&self, account: &str) -> Result<Balance>;

    /// Sets `wanted` aside if it fits under `caps` beside what is settled and reserved ([`Caps::refusal`]): as one step,
    /// whoever else reserves. Gives the receipt; none if it does not fit now.
    async fn reserve(&self, account: &str, caps: &Caps, wanted: Amounts) -> Result<Option<u64>>;

    /// Ends a reservation and counts what was `used`. A receipt that is not known any more changes nothing.
    ///
    /// It is handed over when this is called, whether the future is awaited or not; the future says that it is durable.
    fn settle(&self, account: &str, receipt: u64, used: Amounts) -> BoxFuture<'static, Result<()>>;

    /// Says that nobody opens the accounts any more whose names begin with `prefix` and sort before `oldest`: their windows are
    /// over. Those are deleted in which nothing is set aside. It is handed over when this is called; a failure is logged, since
    /// the next day asks again.
    fn forget(&self, prefix: &str, oldest: &str);

    /// Waits until the account may have changed. Changes since this was called count, though the future was polled later.
    ///
    /// Default: a tenth of a second, since another process tells nobody.
    fn changed(&self, account: &str) -> BoxFuture<'_, ()> {
        let _ = account;
        Box::pin(tokio::time::sleep(Duration::from_millis(100)))
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

    fn forget(&self, prefix: &str, oldest: &str) {
        (**self).forget(prefix, oldest);
    }

    fn changed(&self, account: &str) -> BoxFuture<'_, ()> {
        (**self).changed(account)
    }
}

/// Accounts in memory: of one process, for as long as it lives.
#[derive(Default)]
pub struct MemoryLedger {
    accounts: Mutex<BTreeMap<String, AccountState>>,
    changed: Notify,
}

#[derive(Default)]
struct AccountState {
    balance: Balance,
    /// What is set aside, by receipt.
    open: HashMap<u64, Amounts>,
    last: u64,
}

impl MemoryLedger {
    /// No accounts yet.
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
