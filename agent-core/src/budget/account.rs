//! Accounts that a budget reserves from.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::{Amounts, Balance, Caps, Ledger, Reserved};
use crate::error::Result;

/// An account, with the caps that this budget applies to it.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) caps: Caps,
    at: Backend,
}

/// Storage of an account.
#[derive(Clone)]
enum Backend {
    /// In memory, shared only by the budgets that reserve from it.
    Local(Arc<LocalAccount>),
    /// In a ledger, under this name.
    Ledger(Arc<dyn Ledger>, Arc<str>),
}

impl Account {
    pub(crate) fn local(caps: Caps, account: Arc<LocalAccount>) -> Self {
        Self { caps, at: Backend::Local(account) }
    }

    pub(crate) fn in_ledger(caps: Caps, ledger: Arc<dyn Ledger>, name: &str) -> Self {
        Self { caps, at: Backend::Ledger(ledger, name.into()) }
    }

    /// True if both refer to the same account, regardless of their caps.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.at, &other.at) {
            (Backend::Local(own), Backend::Local(other)) => Arc::ptr_eq(own, other),
            (Backend::Ledger(own, name), Backend::Ledger(other, others)) => name == others && Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    pub(crate) async fn balance(&self) -> Result<Balance> {
        match &self.at {
            Backend::Local(account) => Ok(account.balance()),
            Backend::Ledger(ledger, name) => (**ledger).balance(name).await,
        }
    }

    /// Returns the number of accounts at the beginning of a list that are in the same ledger; at
    /// least one.
    fn together(accounts: &[Self]) -> usize {
        let Some(Self { at: Backend::Ledger(ledger, _), .. }) = accounts.first() else { return 1 };
        let is_there = |account: &&Self| matches!(&account.at, Backend::Ledger(other, _) if Arc::ptr_eq(ledger, other));
        accounts.iter().take_while(is_there).count()
    }

    /// Reserves `wanted` in the accounts at the beginning of a list that are in the same ledger, and
    /// returns the receipts, which only ledgers need.
    pub(crate) async fn reserve(accounts: &[Self], wanted: Amounts) -> Result<Reserved> {
        let Some(first) = accounts.first() else { return Ok(Reserved::All(Vec::new())) };
        let ledger = match &first.at {
            Backend::Local(account) if account.reserve(&first.caps, wanted) => return Ok(Reserved::All(vec![0])),
            Backend::Local(_) => return Ok(Reserved::RefusedBy(0)),
            Backend::Ledger(ledger, _) => ledger,
        };
        let all: Vec<_> = accounts[..Self::together(accounts)].iter().filter_map(Self::named).collect();
        (**ledger).reserve_all(&all, wanted).await
    }

    /// Returns the name and the caps of an account in a ledger.
    fn named(&self) -> Option<(Arc<str>, Caps)> {
        match &self.at {
            Backend::Local(_) => None,
            Backend::Ledger(_, name) => Some((name.clone(), self.caps)),
        }
    }

    /// Counts `used`, unless the account outlives the process.
    pub(super) fn count_again(&self, used: Amounts) {
        if let Backend::Local(account) = &self.at {
            account.settle(Amounts::none(), used);
        }
    }

    /// Settles reservations of `reserved` in the first accounts, which have these receipts. Returns
    /// futures to await for those in ledgers.
    pub(crate) fn settle(
        mut accounts: &[Self],
        mut receipts: &[u64],
        reserved: Amounts,
        used: Amounts,
    ) -> Vec<BoxFuture<'static, Result<()>>> {
        let mut settling = Vec::new();
        while let (Some(first), false) = (accounts.first(), receipts.is_empty()) {
            let together = Self::together(accounts).min(receipts.len());
            match &first.at {
                Backend::Local(account) => account.settle(reserved, used),
                Backend::Ledger(ledger, _) => {
                    let named = accounts.iter().filter_map(Self::named).map(|(name, _)| name);
                    let all: Vec<_> = named.zip(receipts.iter().copied()).take(together).collect();
                    settling.push((**ledger).settle_all(&all, used));
                }
            }
            (accounts, receipts) = (&accounts[together..], &receipts[together..]);
        }
        settling
    }

    /// Waits until the account may have changed since this call.
    pub(crate) fn changed(&self) -> BoxFuture<'_, ()> {
        match &self.at {
            Backend::Local(account) => Box::pin(account.changed.notified()),
            Backend::Ledger(ledger, name) => (**ledger).changed(name),
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: &dyn fmt::Debug = match &self.at {
            Backend::Local(_) => &"own",
            Backend::Ledger(_, name) => name,
        };
        f.debug_struct("Account").field("name", name).field("caps", &self.caps).finish_non_exhaustive()
    }
}

/// An account outside of any ledger.
#[derive(Default)]
pub(crate) struct LocalAccount {
    balance: Mutex<Balance>,
    changed: Notify,
}

impl LocalAccount {
    /// Creates an account with an initial used amount.
    pub(crate) fn begun(settled: Amounts) -> Self {
        Self { balance: Mutex::new(Balance::new(settled, Amounts::none())), changed: Notify::new() }
    }

    pub(crate) fn balance(&self) -> Balance {
        *self.lock()
    }

    fn reserve(&self, caps: &Caps, wanted: Amounts) -> bool {
        self.lock().reserve(caps, wanted)
    }

    fn settle(&self, reserved: Amounts, used: Amounts) {
        self.lock().settle(reserved, used);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
