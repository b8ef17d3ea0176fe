//! Budgets: limits on the usage of a tree of runs, reserved before a call and settled after it.
//!
//! A [`Budget`] reserves from accounts: one shared by all holders of the budget, those of its
//! [`Window`]s, and one for each run of the tree. A call must fit into all of them. Named accounts,
//! which outlive a run, are stored in a [`Ledger`], in memory or shared by several processes.
//!
//! Applications give an agent a budget, and authors of ledgers implement [`Ledger`].
//!
//! ```
//! use agent_core::budget::{Budget, Caps, Window};
//!
//! let budget = Budget::builder()
//!     .caps(Caps::default().model_calls(20))
//!     .window(Window::Day, Caps::default().tokens(1_000_000))
//!     .build()?;
//! assert!(!budget.is_unlimited());
//! # Ok::<(), agent_core::Error>(())
//! ```

pub(crate) mod account;
mod builder;
mod ledger;
mod reservation;
mod terms;
mod upper_bound;

use std::{
    fmt,
    sync::{Arc, LazyLock, Mutex, atomic::AtomicU64},
    time::Duration,
};

pub(crate) use self::account::Account;
pub(crate) use self::upper_bound::UpperBound;
use self::{account::LocalAccount, terms::Terms};
pub use self::{
    builder::{BudgetBuilder, Window},
    ledger::{Balance, Ledger, MemoryLedger, Reserved},
    reservation::Reservation,
};
pub use crate::amounts::{Amounts, Caps};
use crate::error::{Error, ErrorKind, Result};

/// A usage limit, shared by all runs that hold a clone. A child run also reserves from its parent's
/// accounts.
///
/// Amounts are reserved before a call, so that concurrent runs together cannot exceed a cap.
///
/// ```
/// use agent_core::{Budget, Caps, budget::Amounts};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let budget = Budget::new(Caps::default().tokens(100));
/// let call = budget.reserve(Amounts::none().tokens(80)).await?;
/// assert!(budget.reserve(Amounts::none().tokens(80)).await.is_err(), "80 are set aside");
/// call.settle(Amounts::none().tokens(20)).await?;
/// assert!(budget.reserve(Amounts::none().tokens(80)).await.is_ok());
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Budget(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// From the widest account to the run's own.
    pub(crate) accounts: Arc<[Account]>,
    /// Account of the run itself.
    pub(crate) run: Option<Arc<LocalAccount>>,
    /// Distinguishes the accounts of windows from those of another budget.
    pub(crate) name: Arc<str>,
    /// Windows, opened for each root run.
    pub(crate) windows: Arc<[(Window, Caps)]>,
    pub(crate) ledger: Arc<dyn Ledger>,
    /// The last day whose account was opened here, in days since 1970-01-01.
    pub(crate) day: Arc<AtomicU64>,
    pub(crate) terms: Terms,
    /// Token estimator of prompts, used if `terms` has no counter.
    pub(crate) count: Mutex<UpperBound>,
}

/// Reason why a reservation failed.
pub(crate) enum Refused {
    /// The account with this index does not have enough left at the moment.
    By(usize),
    Failed(Error),
}

impl Default for Budget {
    /// A budget without caps.
    fn default() -> Self {
        // It is immutable, so all runs without caps can share it.
        static NONE: LazyLock<Budget> = LazyLock::new(|| {
            let ledger = Arc::new(MemoryLedger::new());
            Budget::from_parts(Vec::new(), "budget".into(), Arc::new([]), ledger, Terms::default())
        });
        NONE.clone()
    }
}

impl Budget {
    /// Creates an in-memory budget with these caps, shared by all its holders. A cost cap requires
    /// prices: see [`builder`](Self::builder).
    pub fn new(caps: Caps) -> Self {
        Self::default().child(caps)
    }

    fn from_parts(
        accounts: Vec<Account>,
        name: Arc<str>,
        windows: Arc<[(Window, Caps)]>,
        ledger: Arc<dyn Ledger>,
        terms: Terms,
    ) -> Self {
        let count = Mutex::default();
        let day = Arc::default();
        Self(Arc::new(Inner { accounts: accounts.into(), run: None, name, windows, ledger, day, terms, count }))
    }

    /// Creates a budget with its own caps that also reserves from this one.
    #[must_use]
    pub fn child(&self, caps: Caps) -> Self {
        let mut accounts = self.0.accounts.to_vec();
        accounts.push(Account::local(caps, Arc::default()));
        Self(Arc::new(Inner { accounts: accounts.into(), run: None, ..self.parts() }))
    }

    /// Creates a budget that also reserves from the accounts of `other`; shared accounts count
    /// once. Uses this budget's prices, or those of `other` if this one has none, and this budget's
    /// windows.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut accounts = self.0.accounts.to_vec();
        let more = other.0.accounts.iter().filter(|more| !accounts.iter().any(|known| known.is(more)));
        let more: Vec<_> = more.cloned().collect();
        accounts.extend(more);
        let parts = self.parts();
        let terms =
            if parts.terms.prices.is_none() && other.0.terms.prices.is_some() { &other.0.terms } else { &parts.terms };
        let terms = terms.clone();
        Self(Arc::new(Inner { accounts: accounts.into(), terms, ..parts }))
    }

    /// Creates the budget of a child of a run with this budget: it reserves from this budget, from
    /// `other` (the agent's budget; shared accounts count once), and from an account of the run
    /// with the caps `own` and the initial used amount `spent`.
    #[must_use]
    pub fn of_sub_run(&self, other: &Self, own: Option<Caps>, spent: Amounts) -> Self {
        let of_each_run = |budget: &Self| budget.0.windows.iter().find(|(w, _)| *w == Window::Run).map(|(_, c)| *c);
        let own = own.unwrap_or_default().tighter(&of_each_run(other).unwrap_or_default());
        let both = self.and(other);
        both.with_run(both.0.accounts.to_vec(), own, spent)
    }

    /// Adds the run's account, unless there are no caps.
    fn with_run(&self, mut accounts: Vec<Account>, own: Caps, spent: Amounts) -> Self {
        if own == Caps::default() && accounts.iter().all(|account| account.caps == Caps::default()) {
            return self.clone();
        }
        let run = Arc::new(LocalAccount::begun(spent));
        accounts.push(Account::local(own, run.clone()));
        Self(Arc::new(Inner { accounts: accounts.into(), run: Some(run), ..self.parts() }))
    }

    fn parts(&self) -> Inner {
        Inner {
            accounts: self.0.accounts.clone(),
            run: self.0.run.clone(),
            name: self.0.name.clone(),
            windows: self.0.windows.clone(),
            ledger: self.0.ledger.clone(),
            day: self.0.day.clone(),
            terms: self.0.terms.clone(),
            count: Mutex::default(), // each run counts its own conversation
        }
    }

    /// Reserves `amounts` in every account, without waiting for running calls.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] with the context key `budget` if an account does not have enough left;
    /// nothing is reserved then.
    /// [`ErrorKind::Store`] if a ledger failed.
    pub async fn reserve(&self, amounts: Amounts) -> Result<Reservation> {
        match self.try_reserve(amounts).await {
            Ok(reservation) => Ok(reservation),
            Err(Refused::Failed(e)) => Err(e),
            Err(Refused::By(index)) => {
                let account = &self.0.accounts[index];
                let Balance { settled, reserved } = account.balance().await?;
                Err(used_up(&account.caps, settled.plus(reserved), amounts))
            }
        }
    }

    pub(crate) async fn try_reserve(&self, amounts: Amounts) -> Result<Reservation, Refused> {
        let mut reservation = Reservation::new(amounts, self.0.accounts.clone());
        // The widest first: amounts reserved by a child are always reserved by its parent too.
        loop {
            let held = reservation.held();
            match Account::reserve(&self.0.accounts[held..], amounts).await {
                Ok(Reserved::All(receipts)) if receipts.is_empty() => return Ok(reservation),
                Ok(Reserved::All(receipts)) => reservation.hold(receipts),
                Ok(Reserved::RefusedBy(index)) => return Err(Refused::By(held + index)),
                Err(e) => return Err(Refused::Failed(e)),
            }
        }
    }

    /// True if no account has a cap on a counted amount, so that reservations are unnecessary.
    pub fn is_unlimited(&self) -> bool {
        self.0.accounts.iter().all(|account| account.caps.count_nothing())
    }

    /// Returns the content of the budget's last account: for a run's budget, that of the run and
    /// its descendants. Empty if there are no caps.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if its ledger failed.
    pub async fn balance(&self) -> Result<Balance> {
        match self.0.accounts.last() {
            Some(account) => account.balance().await,
            None => Ok(Balance::default()),
        }
    }

    /// Returns the usage of the run with this budget and all its descendants; zero if there are no
    /// caps.
    pub fn spent(&self) -> Amounts {
        self.0.run.as_ref().map(|run| run.balance().settled).unwrap_or_default()
    }

    /// Counts the usage of an earlier attempt of this tree in the in-memory accounts; a ledger
    /// already contains it.
    pub fn count_again(&self, used: Amounts) {
        self.0.accounts.iter().for_each(|account| account.count_again(used));
    }

    /// The tightest caps on the shape of runs: wall time, depth and fan-out.
    pub fn run_caps(&self) -> Caps {
        let tightest = self.0.accounts.iter().fold(Caps::default(), |all, account| all.tighter(&account.caps));
        Caps { wall_time: tightest.wall_time, depth: tightest.depth, fan_out: tightest.fan_out, ..Caps::default() }
    }
}

impl Budget {
    /// The longest time that one run may take.
    pub fn wall_time(&self) -> Option<Duration> {
        let of_runs = self.0.windows.iter().filter(|(window, _)| *window == Window::Run).map(|(_, caps)| caps);
        self.0.accounts.iter().map(|account| &account.caps).chain(of_runs).filter_map(|caps| caps.wall_time).min()
    }
}

impl Caps {
    /// The smaller cap of each kind.
    fn tighter(self, other: &Self) -> Self {
        fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            a.into_iter().chain(b).min()
        }
        Self {
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            model_calls: least(self.model_calls, other.model_calls),
            tool_calls: least(self.tool_calls, other.tool_calls),
            wall_time: least(self.wall_time, other.wall_time),
            depth: least(self.depth, other.depth),
            fan_out: least(self.fan_out, other.fan_out),
        }
    }
}

pub(crate) fn used_up(caps: &Caps, used: Amounts, wanted: Amounts) -> Error {
    let (what, sum, cap) = caps.refusal(used, wanted).unwrap_or(("allowance", 0, 0));
    let message = match what {
        "cost" => format!("budget used up: {} would pass the cap of {}", dollars(sum), dollars(cap)),
        _ => format!("budget used up: {sum} {what} would pass the cap of {cap}"),
    };
    Error::new(ErrorKind::Limit, message).with_context("budget", what)
}

fn dollars(micros: u64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Budget").field(&self.0.accounts).finish()
    }
}

#[cfg(test)]
mod tests;
