//! Budgets: what a tree of runs may use, set aside before a call and settled after it.
//!
//! A [`Budget`] draws on accounts: one that everybody shares who has it, those of its [`Window`]s, one for each run of the
//! tree. A call must fit in all of them. Accounts that have a name, and so outlive a run, are kept in a [`Ledger`], in memory
//! or one that processes share.
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
mod generous;
mod ledger;
mod reservation;
mod terms;

use std::{
    fmt,
    sync::{Arc, LazyLock, Mutex, atomic::AtomicU64},
};

pub(crate) use self::account::Account;
use self::{account::LocalAccount, generous::Generous, terms::Terms};
pub use self::{
    builder::{BudgetBuilder, Window},
    ledger::{Balance, Ledger, MemoryLedger},
    reservation::Reservation,
};
pub use crate::amounts::{Amounts, Caps};
use crate::error::{Error, ErrorKind, Result};

/// What may be used, shared by all runs that hold a clone. A child draws on its parent's accounts too.
///
/// What may be used is set aside before a call, so that many runs together cannot pass a cap that each alone would keep.
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
    /// From the widest to the run's own.
    pub(crate) accounts: Arc<[Account]>,
    /// The account of the run itself.
    pub(crate) run: Option<Arc<LocalAccount>>,
    /// Tells the accounts of windows apart from another budget's.
    pub(crate) name: Arc<str>,
    /// Opened for each root run.
    pub(crate) windows: Arc<[(Window, Caps)]>,
    pub(crate) ledger: Arc<dyn Ledger>,
    /// The last day whose account was opened here, in days since 1970.
    pub(crate) day: Arc<AtomicU64>,
    pub(crate) terms: Terms,
    /// What prompts have, where the terms name no counter.
    pub(crate) count: Mutex<Generous>,
}

/// Why nothing was set aside.
pub(crate) enum Refused {
    /// This account has not enough left at the moment.
    By(usize),
    Failed(Error),
}

impl Default for Budget {
    /// No caps.
    fn default() -> Self {
        // Nothing of it can be changed, so that all runs without caps may have the same.
        static NONE: LazyLock<Budget> = LazyLock::new(|| {
            let ledger = Arc::new(MemoryLedger::new());
            Budget::from_parts(Vec::new(), "budget".into(), Arc::new([]), ledger, Terms::default())
        });
        NONE.clone()
    }
}

impl Budget {
    /// A budget with these caps for all who hold it, in memory. For money, prices are needed: see [`builder`](Self::builder).
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

    /// A budget with caps of its own that draws on this one too.
    #[must_use]
    pub fn child(&self, caps: Caps) -> Self {
        let mut accounts = self.0.accounts.to_vec();
        accounts.push(Account::local(caps, Arc::default()));
        Self(Arc::new(Inner { accounts: accounts.into(), run: None, ..self.parts() }))
    }

    /// A budget that draws on the accounts of another one, too, of which each counts once. This one's prices hold, or the other's where this
    /// one has none; windows are this one's.
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

    /// The budget of a child of a run that has this budget: it draws on this, on `other` (the agent's own, of which each
    /// account counts once), and on an account of the run itself with `own` caps, in which `spent` was used before.
    #[must_use]
    pub fn of_sub_run(&self, other: &Self, own: Option<Caps>, spent: Amounts) -> Self {
        let of_each_run = |budget: &Self| budget.0.windows.iter().find(|(w, _)| *w == Window::Run).map(|(_, c)| *c);
        let own = own.unwrap_or_default().tighter(&of_each_run(other).unwrap_or_default());
        let both = self.and(other);
        both.with_run(both.0.accounts.to_vec(), own, spent)
    }

    /// Adds the run's own account, unless nothing is limited.
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
            count: Mutex::default(), // each run follows its own conversation
        }
    }

    /// Sets `amounts` aside in every account, without waiting for calls under way.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] with the context key `budget` if one has not enough left; nothing is set aside then.
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
        // The widest first: what a child has set aside, its parent has too, at every moment.
        for (index, account) in self.0.accounts.iter().enumerate() {
            match account.reserve(amounts).await {
                Ok(Some(receipt)) => reservation.hold(receipt),
                Ok(None) => return Err(Refused::By(index)),
                Err(e) => return Err(Refused::Failed(e)),
            }
        }
        Ok(reservation)
    }

    /// True if there is nothing to reserve: no account has a cap on anything that is counted.
    pub fn is_unlimited(&self) -> bool {
        self.0.accounts.iter().all(|account| account.caps.count_nothing())
    }

    /// What the account of the budget itself holds; of a run's budget, the run's and its descendants'. Nothing if
    /// nothing is limited.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if its ledger failed.
    pub async fn balance(&self) -> Result<Balance> {
        match self.0.accounts.last() {
            Some(account) => account.balance().await,
            None => Ok(Balance::default()),
        }
    }

    /// What the run used that has this budget, with all its descendants; nothing if nothing is limited.
    pub fn spent(&self) -> Amounts {
        self.0.run.as_ref().map(|run| run.balance().settled).unwrap_or_default()
    }

    /// Counts what an earlier attempt of this tree used and a ledger knows already: in the accounts of this process alone.
    pub fn count_again(&self, used: Amounts) {
        self.0.accounts.iter().for_each(|account| account.count_again(used));
    }

    /// The tightest caps on the form of runs: their time, their depth and their fan-out.
    pub fn run_caps(&self) -> Caps {
        let tightest = self.0.accounts.iter().fold(Caps::default(), |all, account| all.tighter(&account.caps));
        Caps { wall_time: tightest.wall_time, depth: tightest.depth, fan_out: tightest.fan_out, ..Caps::default() }
    }
}

impl Caps {
    /// The smaller of each.
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
