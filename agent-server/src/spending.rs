//! Spending limits of keys and tenants: accounts of money in a ledger, one per window.

use std::{fmt, sync::Arc, time::Duration};

use agent::{Budget, Caps, Result, RunRequest, SessionId, Usage, budget::Ledger, model::PriceTable};
use serde::{Deserialize, Serialize};
use time::{Date, Month, OffsetDateTime, Time, format_description::well_known::Rfc3339};

use crate::{caller::Caller, clock::now, error::ApiError};

/// Ledger of the spending of keys and tenants, and price table of model calls.
///
/// The limits of a key are in its row ([`CallerLimits`](crate::CallerLimits)), the common limits of
/// a tenant's keys beside the rows ([`TenantLimits`](crate::TenantLimits)). All processes that
/// share the ledger count together, and the accounts survive the processes.
///
/// ```
/// use agent::{Usage, budget::MemoryLedger, model::PriceTable};
/// use agent_server::Spending;
///
/// struct OneDollarPerMillion;
///
/// impl PriceTable for OneDollarPerMillion {
///     fn cost(&self, _: &str, usage: &Usage) -> Option<u64> {
///         Some(usage.total())
///     }
/// }
///
/// let spending = Spending::new(MemoryLedger::new(), OneDollarPerMillion);
/// # let _ = spending;
/// ```
#[derive(Clone)]
pub struct Spending(Arc<Inner>);

struct Inner {
    ledger: Arc<dyn Ledger>,
    prices: Prices,
}

/// Price table shared by the budgets of all accounts.
#[derive(Clone)]
struct Prices(Arc<dyn PriceTable>);

impl PriceTable for Prices {
    fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        self.0.cost(model, usage)
    }
}

/// Owner of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Payer {
    Key,
    Tenant,
}

/// Time window of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Window {
    Day,
    Month,
}

/// Spending limit of one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Allowance {
    pub(crate) of: Payer,
    /// Name of the tenant, or of the tenant and the owner of the key.
    name: String,
    pub(crate) per: Window,
    /// Limit in millionths of a dollar.
    pub(crate) limit: u64,
}

/// Allowances of a request, for persistence.
#[derive(Clone, Debug)]
pub(crate) struct Allowances(pub(crate) Vec<Allowance>);

/// Balance of an account in its current window.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spent {
    of: Payer,
    per: Window,
    limit: u64,
    spent: u64,
    /// Amount reserved for active calls.
    reserved: u64,
    /// End of the window: milliseconds since 1970, UTC.
    until: u64,
}

impl Allowance {
    /// Returns all allowances that limit the caller.
    pub(crate) fn of(caller: &Caller) -> Vec<Self> {
        let (key, tenant) = (caller.limited(), caller.tenant_limited());
        let of_key = SessionId::new(caller.tenant(), caller.subject()).to_string();
        let of_tenant = caller.tenant().to_owned();
        let all = [
            (Payer::Key, &of_key, Window::Day, key.cost_per_day),
            (Payer::Key, &of_key, Window::Month, key.cost_per_month),
            (Payer::Tenant, &of_tenant, Window::Day, tenant.cost_per_day),
            (Payer::Tenant, &of_tenant, Window::Month, tenant.cost_per_month),
        ];
        let limited = |(of, name, per, limit): (_, &String, _, Option<u64>)| {
            limit.map(|limit| Self { of, name: name.clone(), per, limit })
        };
        all.into_iter().filter_map(limited).collect()
    }

    /// Returns the owner of the account: the tenant, and the name of the key; none for the account
    /// of all keys.
    pub(crate) fn owner(&self) -> (String, Option<String>) {
        match self.of {
            Payer::Tenant => (self.name.clone(), None),
            Payer::Key => match SessionId::parse(&self.name) {
                Some(id) => (id.user().to_owned(), Some(id.session().to_owned())),
                None => (String::new(), Some(self.name.clone())),
            },
        }
    }

    /// Returns the common prefix of the accounts of this kind, which sort by time.
    fn prefix(&self) -> String {
        format!("{}/{}/{}/", self.of.as_str(), self.name, self.per.as_str())
    }

    fn refusal(&self, spent: &Spent) -> ApiError {
        let (whose, limit, window) = (self.of.as_str(), dollars(self.limit), self.per.as_str());
        let until = from_millis(spent.until).format(&Rfc3339).unwrap_or_default();
        let message = format!(
            "the spending limit of the {whose} per {window} ({limit}) is reached: retry at {until}, or ask the operator for a higher 'cost_per_{window}'"
        );
        let wait = Duration::from_millis(spent.until.saturating_sub(now()));
        ApiError::too_many("spent", message, wait)
    }
}

impl Spent {
    /// Returns the amount spent, in dollars.
    pub(crate) fn dollars(&self) -> f64 {
        self.spent as f64 / 1e6
    }

    /// Returns the remaining amount in dollars, without the amount reserved for active calls.
    pub(crate) fn dollars_left(&self) -> f64 {
        self.limit.saturating_sub(self.used()) as f64 / 1e6
    }

    fn used(&self) -> u64 {
        self.spent + self.reserved
    }
}

impl Payer {
    fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Tenant => "tenant",
        }
    }
}

impl Window {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns the first days of the window around a time, of the previous one and of the next one.
    fn around(self, moment: OffsetDateTime) -> (Date, Date, Date) {
        let today = moment.date();
        let first = |date: Date| date.replace_day(1).unwrap_or(date);
        match self {
            Self::Day => (today, today.previous_day().unwrap_or(today), today.next_day().unwrap_or(today)),
            Self::Month => {
                let this = first(today);
                let before = first(this.previous_day().unwrap_or(this));
                let days = Month::length(today.month(), today.year());
                let after = this.replace_day(days).ok().and_then(Date::next_day).unwrap_or(this);
                (this, before, after)
            }
        }
    }
}

impl Spending {
    /// Creates spending limits with this ledger and price table. Callers with a spending limit
    /// cannot call a model without a price.
    pub fn new(ledger: impl Ledger, prices: impl PriceTable) -> Self {
        Self(Arc::new(Inner { ledger: Arc::new(ledger), prices: Prices(Arc::new(prices)) }))
    }

    /// Adds the accounts to the request of a dispatched job. For receivers of the jobs of
    /// [`ServerBuilder::dispatch`](crate::ServerBuilder::dispatch), after [`shape`](crate::shape).
    ///
    /// # Errors
    /// An error if an account cannot be opened.
    pub fn charge(&self, request: RunRequest) -> Result<RunRequest> {
        let Ok(allowances) = request.resources.get::<Allowances>() else { return Ok(request) };
        let moment = from_millis(now());
        let budgets = allowances.0.iter().map(|allowance| self.account(allowance, moment));
        let mut budgets = budgets.collect::<Result<Vec<_>>>()?.into_iter();
        let Some(first) = budgets.next() else { return Ok(request) };
        let budget = budgets.fold(first, |all, more| all.and(&more));
        Ok(request.budget(budget))
    }

    /// Checks that something is left to spend. The first check of a window deletes the accounts of
    /// past windows.
    ///
    /// # Errors
    /// 429 with the time to wait; the errors of the ledger.
    pub(crate) async fn check(&self, allowances: &[Allowance], now: u64) -> Result<(), ApiError> {
        for allowance in allowances {
            let spent = self.spent(allowance, now).await?;
            if spent.used() >= allowance.limit {
                return Err(allowance.refusal(&spent));
            }
            if spent.used() == 0 {
                self.forget_before(allowance, now);
            }
        }
        Ok(())
    }

    fn forget_before(&self, allowance: &Allowance, now: u64) {
        // A run of the previous window may still be active.
        let (prefix, (_, before, _)) = (allowance.prefix(), allowance.per.around(from_millis(now)));
        self.0.ledger.forget(&prefix, &format!("{prefix}{before}"));
    }

    /// Returns the balance of an account at this time.
    pub(crate) async fn spent(&self, allowance: &Allowance, now: u64) -> Result<Spent> {
        let moment = from_millis(now);
        let (.., after) = allowance.per.around(moment);
        let balance = self.account(allowance, moment)?.balance().await?;
        let until = after.with_time(Time::MIDNIGHT).assume_utc().unix_timestamp();
        Ok(Spent {
            of: allowance.of,
            per: allowance.per,
            limit: allowance.limit,
            spent: balance.settled.cost,
            reserved: balance.reserved.cost,
            until: u64::try_from(until).unwrap_or_default() * 1_000,
        })
    }

    fn account(&self, allowance: &Allowance, moment: OffsetDateTime) -> Result<Budget> {
        let (begins, ..) = allowance.per.around(moment);
        Budget::builder()
            .name(format!("{}{begins}", allowance.prefix()))
            .caps(Caps::default().cost(allowance.limit))
            .ledger(self.0.ledger.clone())
            .prices(self.0.prices.clone())
            .build()
    }
}

fn from_millis(millis: u64) -> OffsetDateTime {
    let seconds = i64::try_from(millis / 1_000).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn dollars(micros: u64) -> String {
    format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000)
}

impl fmt::Debug for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spending").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use agent::budget::{Amounts, MemoryLedger};

    use super::*;
    use crate::caller::{CallerLimits, TenantLimits};

    struct Plain;

    impl PriceTable for Plain {
        fn cost(&self, _: &str, usage: &Usage) -> Option<u64> {
            Some(usage.total())
        }
    }

    /// Last millisecond of January 2028 in UTC.
    const JANUARY: u64 = 1_832_975_999_999;
    const FEBRUARY: u64 = JANUARY + 1;

    async fn spend(spending: &Spending, allowance: &Allowance, at: u64, cost: u64) {
        let account = spending.account(allowance, from_millis(at)).expect("a budget");
        let reserved = account.reserve(Amounts::none().cost(cost)).await.expect("it fits");
        reserved.settle(Amounts::none().cost(cost)).await.expect("in memory");
    }

    #[tokio::test]
    async fn what_is_spent_counts_until_its_window_ends() {
        let limits = CallerLimits { cost_per_day: Some(50), cost_per_month: Some(100), ..CallerLimits::default() };
        let allowances = Allowance::of(&Caller::new("teapots", "ada").limits(limits));
        let spending = Spending::new(MemoryLedger::new(), Plain);
        for allowance in &allowances {
            spend(&spending, allowance, JANUARY, 50).await;
        }
        let refused = spending.check(&allowances, JANUARY).await.expect_err("the day's money is spent");
        assert_eq!((refused.status().as_u16(), refused.code()), (429, "spent"));
        assert!(
            refused.message().contains("2028-02-01T00:00:00Z") && refused.message().contains("cost_per_day"),
            "{refused}"
        );
        let yesterday = JANUARY - 86_400_000;
        assert!(spending.check(&allowances, yesterday).await.is_ok(), "another day of the month");
        spend(&spending, &allowances[1], yesterday, 50).await;
        let refused = spending.check(&allowances, yesterday).await.expect_err("the month's money is spent");
        assert!(refused.message().contains("cost_per_month"), "{refused}");
        assert!(spending.check(&allowances, FEBRUARY).await.is_ok(), "another month");
    }

    #[tokio::test]
    async fn what_one_key_spends_another_one_can_still_and_their_tenant_cannot() {
        let limits = CallerLimits { cost_per_day: Some(50), ..CallerLimits::default() };
        let both = TenantLimits { cost_per_day: Some(60), ..TenantLimits::default() };
        let of = |subject| Allowance::of(&Caller::new("teapots", subject).limits(limits).tenant_limits(both));
        let spending = Spending::new(MemoryLedger::new(), Plain);
        for allowance in of("ada") {
            spend(&spending, &allowance, JANUARY, 50).await;
        }
        assert!(spending.check(&of("ada"), JANUARY).await.is_err());
        assert!(spending.check(&of("bob"), JANUARY).await.is_ok());
        for allowance in of("bob") {
            spend(&spending, &allowance, JANUARY, 10).await;
        }
        let refused = spending.check(&of("bob"), JANUARY).await.expect_err("the tenant's money is spent");
        assert!(refused.message().contains("the tenant"), "{refused}");
    }
}
