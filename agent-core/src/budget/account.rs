//! Accounts that a budget reserves from.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::{Amounts, Balance, Caps, Ledger};
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

    /// Reserves `wanted` and returns a receipt, which only ledgers need; `None` if it does not fit
    /// now.
    pub(crate) async fn reserve(&self, wanted: Amounts) -> Result<Option<u64>> {
        match &self.at {
            Backend::Local(account) => Ok(account.reserve(&self.caps, wanted).then_some(0)),
            Backend::Ledger(ledger, name) => (**ledger).reserve(name, &self.caps, wanted).await,
        }
    }

    /// Counts `used`, unless the account outlives the process.
    pub(super) fn count_again(&self, used: Amounts) {
        if let Backend::Local(account) = &self.at {
            account.settle(Amounts::none(), used);
        }
    }

    /// Settles a reservation of `reserved`. Returns a future to await if the account is in a
    /// ledger.
    pub(crate) fn settle(
        &self,
        receipt: u64,
        reserved: Amounts,
        used: Amounts,
    ) -> Option<BoxFuture<'static, Result<()>>> {
        match &self.at {
            Backend::Local(account) => {
                account.settle(reserved, used);
                None
            }
            Backend::Ledger(ledger, name) => Some((**ledger).settle(name, receipt, used)),
        }
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
