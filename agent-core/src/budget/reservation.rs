//! Amounts set aside for one call.

use std::fmt;

use super::{Account, Amounts};
use crate::Result;

/// Amounts set aside for one call, in every account that a budget draws on.
///
/// Dropped before the call [began](Self::begin), they are given back. Dropped after that they are booked as used: nobody
/// knows what a call used that was cut off.
#[must_use = "what is dropped is given back"]
pub struct Reservation {
    amounts: Amounts,
    /// Where they are set aside, and the receipt for it.
    holds: Vec<(Account, u64)>,
    begun: bool,
}

impl Reservation {
    pub(super) fn new(amounts: Amounts) -> Self {
        Self { amounts, holds: Vec::new(), begun: false }
    }

    pub(super) fn hold(&mut self, account: Account, receipt: u64) {
        self.holds.push((account, receipt));
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

    /// Books what was really used, even if it is more than was set aside, and gives the rest back. Booked as soon as it is
    /// called and durable when the ledger says so.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if a ledger failed.
    pub async fn settle(mut self, used: Amounts) -> Result<()> {
        for booked in self.book(used) {
            booked.await?;
        }
        Ok(())
    }

    fn book(&mut self, used: Amounts) -> Vec<futures::future::BoxFuture<'static, Result<()>>> {
        let holds = self.holds.drain(..);
        holds.map(|(account, receipt)| account.books().settle(&account.account, receipt, used)).collect()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let used = if self.begun { self.amounts } else { Amounts::none() };
        drop(self.book(used)); // handed over all the same
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("amounts", &self.amounts).field("begun", &self.begun).finish()
    }
}
