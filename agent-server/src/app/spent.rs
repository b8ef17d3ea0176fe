//! Spending limits of callers.

use agent::RunRequest;

use super::App;
use crate::{
    caller::Caller,
    clock::now,
    error::ApiError,
    spending::{Allowance, Allowances, Spending, Spent},
};

impl App {
    /// Adds the caller's spending allowances to the request.
    pub(super) fn allow_spending(&self, caller: &Caller, request: RunRequest) -> RunRequest {
        match Allowance::of(caller) {
            none if none.is_empty() => request,
            allowances => request.resource(Allowances(allowances)),
        }
    }

    /// Checks that something is left of the request's spending allowances.
    ///
    /// # Errors
    /// 429 if a limit is exhausted; the errors of the ledger.
    pub(super) async fn check_spending(&self, request: &RunRequest) -> Result<(), ApiError> {
        match request.resources.get::<Allowances>() {
            Ok(allowances) => self.check_allowances(&allowances.0).await,
            Err(_) => Ok(()),
        }
    }

    /// Checks that something is left of these allowances.
    ///
    /// # Errors
    /// 429 if a limit is exhausted; the errors of the ledger.
    pub(super) async fn check_allowances(&self, allowances: &[Allowance]) -> Result<(), ApiError> {
        if allowances.is_empty() {
            return Ok(());
        }
        self.spending()?.check(allowances, now()).await
    }

    /// Returns the caller's spending in each limited window.
    ///
    /// # Errors
    /// The errors of the ledger.
    pub(crate) async fn spent(&self, caller: &Caller) -> Result<Vec<Spent>, ApiError> {
        let mut all = Vec::new();
        for allowance in Allowance::of(caller) {
            all.push(self.spending()?.spent(&allowance, now()).await?);
        }
        Ok(all)
    }

    /// Returns the balances of these allowances, as far as the ledger can be read.
    pub(crate) async fn balances(&self, allowances: Vec<Allowance>) -> Vec<(Allowance, Spent)> {
        let Some(spending) = &self.0.spending else { return Vec::new() };
        let mut balances = Vec::new();
        for allowance in allowances {
            match spending.spent(&allowance, now()).await {
                Ok(spent) => balances.push((allowance, spent)),
                Err(error) => tracing::warn!(%error, "the spending could not be read: it is missing from the metrics"),
            }
        }
        balances
    }

    fn spending(&self) -> Result<&Spending, ApiError> {
        self.0.spending.as_ref().ok_or_else(|| {
            tracing::error!("a key has a daily or monthly money limit, but the server does not count spending");
            ApiError::internal()
        })
    }
}
