//! Builder of budgets with windows, prices and a ledger.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use super::{Account, Amounts, Budget, Caps, Ledger, MemoryLedger, terms::Terms};
use crate::{
    error::{Error, Result},
    llm::TokenCounter,
    state::RunIds,
    usage::PriceTable,
};

/// Scope of an account: the runs that it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// One run with all its descendants. Amounts used before a pause or a crash still count after
    /// resuming.
    Run,
    /// All runs of a session.
    Session,
    /// All runs on behalf of one user
    /// ([`RunRequest::on_behalf_of`](crate::RunRequest::on_behalf_of)); a run without a user has no
    /// such account.
    User,
    /// All runs that began on one day, in UTC.
    Day,
}

/// Builder of a [`Budget`].
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::{Budget, Caps, Usage, Window, model::PriceTable};
///
/// struct OneDollarPerMillion;
///
/// impl PriceTable for OneDollarPerMillion {
///     fn cost(&self, _: &str, usage: &Usage) -> Option<u64> {
///         Some(usage.total())
///     }
/// }
///
/// let budget = Budget::builder()
///     .caps(Caps::default().cost(500_000_000))
///     .window(Window::Day, Caps::default().cost(50_000_000))
///     .window(Window::User, Caps::default().tokens(10_000_000))
///     .window(Window::Run, Caps::default().cost(1_000_000).wall_time(Duration::from_secs(600)).depth(2).fan_out(8))
///     .prices(OneDollarPerMillion)
///     .build()?;
/// # drop(budget);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[must_use]
pub struct BudgetBuilder {
    name: String,
    caps: Caps,
    windows: Vec<(Window, Caps)>,
    ledger: Arc<dyn Ledger>,
    terms: Terms,
}

impl Budget {
    /// Creates a builder.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder {
            name: "budget".into(),
            caps: Caps::default(),
            windows: Vec::new(),
            ledger: Arc::new(MemoryLedger::new()),
            terms: Terms::default(),
        }
    }

    /// Creates the budget of a root run: this budget, the accounts of its windows, and an account
    /// of the run with the caps `own` and the initial used amount `spent`.
    #[must_use]
    pub fn of_run(&self, ids: &RunIds, user: Option<&str>, own: Option<Caps>, spent: Amounts) -> Self {
        let mut accounts = self.0.accounts.to_vec();
        let mut of_this_run = own.unwrap_or_default();
        for (window, caps) in self.0.windows.iter() {
            let account = match window {
                Window::Run => {
                    of_this_run = of_this_run.tighter(caps);
                    continue;
                }
                Window::Session => Some(format!("session/{}", ids.session)),
                Window::User => user.map(|user| format!("user/{user}")),
                Window::Day => Some(self.open_day(today())),
            };
            if let Some(account) = account {
                let name = format!("{}/{account}", self.0.name);
                accounts.push(Account::in_ledger(*caps, self.0.ledger.clone(), &name));
            }
        }
        self.with_run(accounts, of_this_run, spent)
    }

    /// Deletes the account of a session or of a user in the budget's ledger, once nothing is
    /// reserved there: call it when the session, or the user, is deleted. Otherwise such accounts
    /// stay. [`Window::Run`] and [`Window::Day`] have no accounts to delete.
    ///
    /// ```
    /// use agent_core::{Budget, Caps, RunIds, Window, budget::Amounts};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let budget = Budget::builder().window(Window::Session, Caps::default().tool_calls(1)).build()?;
    /// let call = async |budget: &Budget| {
    ///     let run = budget.of_run(&RunIds::root("assistant", "garden"), None, None, Amounts::none());
    ///     let one = Amounts::none().tool_calls(1);
    ///     run.reserve(one).await?.settle(one).await
    /// };
    /// call(&budget).await?;
    /// assert!(call(&budget).await.is_err(), "the session has used what it may");
    /// budget.forget(Window::Session, "garden");
    /// assert!(call(&budget).await.is_ok());
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    pub fn forget(&self, window: Window, id: &str) {
        let kind = match window {
            Window::Session => "session",
            Window::User => "user",
            Window::Run | Window::Day => return,
        };
        if self.0.windows.iter().any(|(known, _)| *known == window) {
            let account = format!("{}/{kind}/{id}", self.0.name);
            self.0.ledger.forget(&account, &format!("{account}\0"));
        }
    }

    /// Returns the name of a day's account; `since` is in days since 1970-01-01. Accounts older
    /// than the day before are deleted: a run that began yesterday may still be running.
    fn open_day(&self, since: u64) -> String {
        if self.0.day.swap(since, Ordering::Relaxed) != since {
            let days = format!("{}/day/", self.0.name);
            self.0.ledger.forget(&days, &format!("{days}{}", day(since.saturating_sub(1))));
        }
        format!("day/{}", day(since))
    }
}

impl BudgetBuilder {
    /// Sets the caps on all runs together that have this budget, or share its ledger and
    /// [name](Self::name).
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Sets the caps on each window of this kind.
    pub fn window(mut self, window: Window, caps: Caps) -> Self {
        self.windows.retain(|(known, _)| *known != window);
        self.windows.push((window, caps));
        self
    }

    /// Sets the ledger of the accounts that outlive a run: all processes with this ledger share
    /// them. Default: in memory.
    pub fn ledger(mut self, ledger: impl Ledger) -> Self {
        self.ledger = Arc::new(ledger);
        self
    }

    /// Sets the name that distinguishes the budget's accounts in the ledger from those of another
    /// budget. Default: `budget`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the prices of model calls. A cost cap requires it.
    pub fn prices(mut self, prices: impl PriceTable) -> Self {
        self.terms.prices = Some(Arc::new(prices));
        self
    }

    /// Sets the counter of prompt tokens before a call. Default: an estimate that is too high for
    /// ordinary text.
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.terms.counter = Some(Arc::new(counter));
        self
    }

    /// Allows models without a price under a cost cap: they count as free. Default: such a call is
    /// an error.
    pub fn allow_unpriced(mut self) -> Self {
        self.terms.allow_unpriced = true;
        self
    }

    /// Sets the assumed maximum number of answer tokens, used under a token or cost cap if neither
    /// the request nor the model's info has a limit. Default: 8192.
    pub fn answer_tokens(mut self, most: u64) -> Self {
        self.terms.answer_tokens = most;
        self
    }

    /// Builds the budget.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a cost cap without prices; for a cap on
    /// time, depth or fan-out in a window of several runs; for an `answer_tokens` of 0.
    pub fn build(self) -> Result<Budget> {
        let all = || std::iter::once(&self.caps).chain(self.windows.iter().map(|(_, caps)| caps));
        if all().any(|caps| caps.cost.is_some()) && self.terms.prices.is_none() && !self.terms.allow_unpriced {
            return Err(super::terms::no_prices());
        }
        if let Some((window, _)) = self.windows.iter().find(|(w, caps)| *w != Window::Run && caps.shape_runs()) {
            return Err(Error::config(format!(
                "wall_time, depth and fan_out are a run's own: set them in Window::Run, not in Window::{window:?}"
            )));
        }
        if self.terms.answer_tokens == 0 {
            return Err(Error::config("answer_tokens must be at least 1"));
        }
        let all_runs = Account::in_ledger(self.caps, self.ledger.clone(), &format!("{}/all", self.name));
        Ok(Budget::from_parts(vec![all_runs], self.name.into(), self.windows.into(), self.ledger, self.terms))
    }
}

/// Returns the current number of days since 1970-01-01, in UTC.
fn today() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / 86_400
}

/// Formats the day `since` days after 1970-01-01 as `2026-01-31`. Years begin in March here, so
/// that a leap day is the last day of a year.
fn day(since: u64) -> String {
    let shifted = since + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

impl fmt::Debug for BudgetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetBuilder")
            .field("name", &self.name)
            .field("caps", &self.caps)
            .field("windows", &self.windows)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (since, name) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_779, "2026-11-22")] {
            assert_eq!(day(since), name);
        }
    }

    #[tokio::test]
    async fn accounts_of_past_days_are_dropped_when_a_new_day_begins_and_no_others() {
        let ledger = Arc::new(MemoryLedger::new());
        let budget = |name| Budget::builder().name(name).ledger(ledger.clone()).build().expect("builds");
        let (one, other) = (budget("one"), budget("other"));
        let one_token = Amounts::none().tokens(1);
        let reserve =
            async |account: &str| ledger.reserve(account, &Caps::default(), one_token).await.expect("in memory");
        for day in 20_779..=20_782 {
            for account in [format!("one/{}", one.open_day(day)), format!("other/{}", other.open_day(20_779))] {
                let receipt = reserve(&account).await.expect("fits");
                ledger.settle(&account, receipt, one_token).await.expect("in memory");
            }
        }
        reserve("one/all").await.expect("fits");
        let settled = async |account: &str| ledger.balance(account).await.expect("in memory").settled.tokens;
        for (account, tokens) in [
            ("one/day/2026-11-22", 0),
            ("one/day/2026-11-23", 0),
            ("one/day/2026-11-24", 1),
            ("one/day/2026-11-25", 1),
            ("other/day/2026-11-22", 4),
        ] {
            assert_eq!(settled(account).await, tokens, "{account}");
        }
        let under_way = reserve("one/day/2026-11-24").await.expect("fits");
        one.open_day(20_790);
        assert_eq!(settled("one/day/2026-11-24").await, 1, "a call of that day is under way");
        ledger.settle("one/day/2026-11-24", under_way, one_token).await.expect("in memory");
        one.open_day(20_790);
        assert_eq!(settled("one/day/2026-11-24").await, 2, "they are asked for once a day");
        one.open_day(20_791);
        assert_eq!(settled("one/day/2026-11-24").await, 0);
    }

    #[test]
    fn what_cannot_work_is_refused_with_what_to_do() {
        let error = |builder: BudgetBuilder| builder.build().expect_err("refused").message().to_owned();
        assert!(error(Budget::builder().caps(Caps::default().cost(1))).contains("prices"));
        let days = Budget::builder().window(Window::Day, Caps::default().depth(1));
        assert!(error(days).contains("set them in Window::Run, not in Window::Day"));
    }
}
