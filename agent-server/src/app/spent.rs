//! What callers may spend.

use agent::RunRequest;

use super::App;
use crate::{
    caller::Caller,
    clock::now,
    error::ApiError,
    spending::{Allowance, Allowances, Spending, Spent},
};

impl App {
    /// The request of a caller, with what it may spend.
    pub(super) fn allow_spending(&self, caller: &Caller, request: RunRequest) -> RunRequest {
        match Allowance::of(caller) {
            none if none.is_empty() => request,
            allowances => request.resource(Allowances(allowances)),
        }
    }

    /// The request with the accounts that it draws on, if something is left there.
    ///
    /// # Errors
    /// 429 if what may be spent is spent; those of the ledger.
    pub(super) async fn charge(&self, request: RunRequest) -> Result<RunRequest, ApiError> {
        if let Ok(allowances) = request.resources.get::<Allowances>() {
            self.spending()?.check(&allowances.0, now()).await?;
        }
        self.charge_unchecked(request)
    }

    /// As [`charge`](Self::charge), whatever is left.
    pub(super) fn charge_unchecked(&self, request: RunRequest) -> Result<RunRequest, ApiError> {
        match request.resources.get::<Allowances>() {
            Ok(_) => Ok(self.spending()?.charge(request)?),
            Err(_) => Ok(request),
        }
    }

    /// What the caller has spent, in each window that is limited.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn spent(&self, caller: &Caller) -> Result<Vec<Spent>, ApiError> {
        let mut all = Vec::new();
        for allowance in Allowance::of(caller) {
            all.push(self.spending()?.spent(&allowance, now()).await?);
        }
        Ok(all)
    }

    /// How the accounts stand on which these draw, as far as the ledger can be read.
    pub(crate) async fn balances(&self, allowances: Vec<Allowance>) -> Vec<(Allowance, Spent)> {
        let Some(spending) = &self.0.spending else { return Vec::new() };
        let mut balances = Vec::new();
        for allowance in allowances {
            match spending.spent(&allowance, now()).await {
                Ok(spent) => balances.push((allowance, spent)),
                Err(error) => tracing::warn!(%error, "what is spent was not read: the figures lack it"),
            }
        }
        balances
    }

    fn spending(&self) -> Result<&Spending, ApiError> {
        self.0.spending.as_ref().ok_or_else(|| {
            tracing::error!("a key has a limit of money in a day or a month, and this server counts none");
            ApiError::internal()
        })
    }
}
