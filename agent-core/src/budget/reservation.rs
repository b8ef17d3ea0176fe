//! Amounts set aside for one call.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;

use super::{Account, Amounts};
use crate::error::Result;

/// Amounts set aside for one call, in every account that a budget draws on.
///
/// Dropped before the call [began](Self::begin), they are given back. Dropped after that they are settled as used: nobody
/// knows what a call used that was cut off.
#[must_use = "what is dropped is given back"]
pub struct Reservation {
    amounts: Amounts,
    accounts: Arc<[Account]>,
    /// Of the accounts, from the first on, in which they are set aside.
    receipts: Vec<u64>,
    begun: bool,
    /// Told what was used.
    settled: Option<Box<dyn FnOnce(Amounts) + Send + Sync>>,
}

impl Reservation {
    /// Nothing is set aside yet.
    pub(super) fn new(amounts: Amounts, accounts: Arc<[Account]>) -> Self {
        Self { amounts, receipts: Vec::with_capacity(accounts.len()), accounts, begun: false, settled: None }
    }

    /// They are set aside in the next of the accounts.
    pub(super) fn hold(&mut self, receipt: u64) {
        self.receipts.push(receipt);
    }

    /// Calls `settled` with what was used, once that is known: for a journal.
    pub(crate) fn when_settled(&mut self, settled: impl FnOnce(Amounts) + Send + Sync + 'static) {
        self.settled = Some(Box::new(settled));
    }

    /// What is set aside.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }

    /// Says that the call begins: from now on something may have been used.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// True once the call began.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Counts what was really used, even if it is more than was set aside, and gives the rest back. Counted as soon as this is
    /// called; the future says that it is durable.
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
        let held = self.accounts.iter().zip(self.receipts.drain(..));
        held.filter_map(|(account, receipt)| account.settle(receipt, self.amounts, used)).collect()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let used = if self.begun { self.amounts } else { Amounts::none() };
        drop(self.settle_accounts(used)); // begun all the same
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("amounts", &self.amounts).field("begun", &self.begun).finish()
    }
}
