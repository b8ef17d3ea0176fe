//! Amounts reserved for one call.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;

use super::{Account, Amounts};
use crate::error::Result;

/// Amounts reserved for one call, in every account of a budget.
///
/// If dropped before the call [began](Self::begin), the amounts are released. If dropped
/// afterwards, they are settled as used: the usage of an aborted call is unknown.
#[must_use = "what is dropped is given back"]
pub struct Reservation {
    amounts: Amounts,
    /// Tokens of the prompt as they were counted for a model call; 0 if tokens are not limited.
    pub(crate) prompt: u64,
    accounts: Arc<[Account]>,
    /// Receipts of the accounts in which the amounts are reserved, from the first on.
    receipts: Vec<u64>,
    begun: bool,
    /// Callback that receives the used amounts.
    settled: Option<Box<dyn FnOnce(Amounts) + Send + Sync>>,
}

impl Reservation {
    /// Creates a reservation that holds nothing yet.
    pub(super) fn new(amounts: Amounts, accounts: Arc<[Account]>) -> Self {
        Self { amounts, prompt: 0, receipts: Vec::with_capacity(accounts.len()), accounts, begun: false, settled: None }
    }

    /// Adds the receipts of the next accounts.
    pub(super) fn hold(&mut self, receipts: Vec<u64>) {
        self.receipts.extend(receipts);
    }

    /// Returns the number of accounts in which the amounts are reserved.
    pub(super) fn held(&self) -> usize {
        self.receipts.len()
    }

    /// Calls `settled` with the used amounts once they are known, for the journal.
    pub(crate) fn when_settled(&mut self, settled: impl FnOnce(Amounts) + Send + Sync + 'static) {
        self.settled = Some(Box::new(settled));
    }

    /// The reserved amounts.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }

    /// Marks the call as begun: from now on amounts may have been used.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// True once the call has begun.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Settles the reservation with the amounts that were actually used, even if these exceed the
    /// reservation, and releases the rest. They count as soon as this method is called; the future
    /// resolves when the settlement is durable.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if a ledger failed.
    pub fn settle(mut self, used: Amounts) -> impl Future<Output = Result<()>> + Send + 'static {
        let settling = self.settle_accounts(used);
        async {
            for settling in settling {
                settling.await?;
            }
            Ok(())
        }
    }

    fn settle_accounts(&mut self, used: Amounts) -> Vec<BoxFuture<'static, Result<()>>> {
        if let Some(settled) = self.settled.take() {
            settled(used);
        }
        let receipts = std::mem::take(&mut self.receipts);
        Account::settle(&self.accounts, &receipts, self.amounts, used)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let used = if self.begun { self.amounts } else { Amounts::none() };
        drop(self.settle_accounts(used)); // settling has begun even without polling
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("amounts", &self.amounts).field("begun", &self.begun).finish()
    }
}
