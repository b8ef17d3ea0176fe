//! One of the accounts that a budget draws on.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::{Amounts, Balance, Caps, Ledger};
use crate::error::Result;

/// An account, and how far those may go who draw on it through this budget.
#[derive(Clone)]
pub(crate) struct Account {
    pub(crate) caps: Caps,
    kept: Kept,
}

#[derive(Clone)]
enum Kept {
    /// With the budgets that draw on it: nobody else knows of it.
    Here(Arc<Purse>),
    /// In a ledger, under this name.
    In(Arc<dyn Ledger>, Arc<str>),
}

impl Account {
    pub(crate) fn here(caps: Caps, purse: Arc<Purse>) -> Self {
        Self { caps, kept: Kept::Here(purse) }
    }

    pub(crate) fn in_ledger(caps: Caps, ledger: Arc<dyn Ledger>, name: &str) -> Self {
        Self { caps, kept: Kept::In(ledger, name.into()) }
    }

    /// True if both draw on the same, whatever their caps.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.kept, &other.kept) {
            (Kept::Here(own), Kept::Here(other)) => Arc::ptr_eq(own, other),
            (Kept::In(own, name), Kept::In(other, others)) => name == others && Arc::ptr_eq(own, other),
            _ => false,
        }
    }

    pub(crate) async fn balance(&self) -> Result<Balance> {
        match &self.kept {
            Kept::Here(purse) => Ok(purse.balance()),
            Kept::In(ledger, name) => (**ledger).balance(name).await,
        }
    }

    /// Sets `wanted` aside and gives a receipt, which only ledgers ask for; `None` if it does not fit now.
    pub(crate) async fn reserve(&self, wanted: Amounts) -> Result<Option<u64>> {
        match &self.kept {
            Kept::Here(purse) => Ok(purse.reserve(&self.caps, wanted).then_some(0)),
            Kept::In(ledger, name) => (**ledger).reserve(name, &self.caps, wanted).await,
        }
    }

    /// Counts what was used, unless the account outlives the process.
    pub(super) fn count_again(&self, used: Amounts) {
        if let Kept::Here(purse) = &self.kept {
            purse.settle(Amounts::none(), used);
        }
    }

    /// Ends a reservation of `reserved`. A ledger gives something to wait for.
    pub(crate) fn settle(
        &self,
        receipt: u64,
        reserved: Amounts,
        used: Amounts,
    ) -> Option<BoxFuture<'static, Result<()>>> {
        match &self.kept {
            Kept::Here(purse) => {
                purse.settle(reserved, used);
                None
            }
            Kept::In(ledger, name) => Some((**ledger).settle(name, receipt, used)),
        }
    }

    /// Waits until it may have changed since this was called.
    pub(crate) fn changed(&self) -> BoxFuture<'_, ()> {
        match &self.kept {
            Kept::Here(purse) => Box::pin(purse.changed.notified()),
            Kept::In(ledger, name) => (**ledger).changed(name),
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: &dyn fmt::Debug = match &self.kept {
            Kept::Here(_) => &"own",
            Kept::In(_, name) => name,
        };
        f.debug_struct("Account").field("name", name).field("caps", &self.caps).finish_non_exhaustive()
    }
}

/// An account outside of any ledger.
#[derive(Default)]
pub(crate) struct Purse {
    balance: Mutex<Balance>,
    changed: Notify,
}

impl Purse {
    /// One of which so much was used already.
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
