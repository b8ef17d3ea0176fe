//! Allowance that a tree of runs shares: reserved before a call, settled after it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// Amounts of what a budget counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Amounts {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    pub cost: u64,
    /// Model calls.
    pub model_calls: u64,
    /// Tool calls.
    pub tool_calls: u64,
}

/// Most that may be used; unset is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Caps {
    /// Tokens, in and out.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub cost: Option<u64>,
    /// Model calls.
    pub model_calls: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
}

impl Amounts {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the money, in millionths of a US dollar.
    #[must_use]
    pub fn cost(mut self, micros: u64) -> Self {
        self.cost = micros;
        self
    }

    /// Sets the model calls.
    #[must_use]
    pub fn model_calls(mut self, calls: u64) -> Self {
        self.model_calls = calls;
        self
    }

    /// Sets the tool calls.
    #[must_use]
    pub fn tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = calls;
        self
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            tokens: f(self.tokens, other.tokens),
            cost: f(self.cost, other.cost),
            model_calls: f(self.model_calls, other.model_calls),
            tool_calls: f(self.tool_calls, other.tool_calls),
        }
    }

    /// The first amount that is over its cap: its name, itself and the cap.
    fn over(&self, caps: &Caps) -> Option<(&'static str, u64, u64)> {
        let all = [
            ("tokens", self.tokens, caps.tokens),
            ("cost", self.cost, caps.cost),
            ("model calls", self.model_calls, caps.model_calls),
            ("tool calls", self.tool_calls, caps.tool_calls),
        ];
        all.into_iter().find_map(|(name, used, cap)| cap.filter(|cap| used > *cap).map(|cap| (name, used, cap)))
    }
}

/// A ledger with caps, shared by all runs that hold a clone. A child's ledger draws on its parent's too.
///
/// What may be used is set aside before a call, so that many runs together cannot pass a cap that each alone would keep.
///
/// ```
/// use agent_core::{Amounts, Budget, Caps};
///
/// let mut caps = Caps::default();
/// caps.tokens = Some(100);
/// let budget = Budget::new(caps);
/// let call = budget.reserve(Amounts::none().tokens(80))?;
/// assert!(budget.reserve(Amounts::none().tokens(80)).is_err(), "80 are set aside");
/// call.settle(Amounts::none().tokens(20));
/// assert!(budget.reserve(Amounts::none().tokens(80)).is_ok());
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Budget(Arc<Ledger>);

#[derive(Default)]
struct Ledger {
    caps: Caps,
    parent: Option<Budget>,
    books: Mutex<Books>,
}

#[derive(Clone, Copy, Default)]
struct Books {
    settled: Amounts,
    reserved: Amounts,
}

impl Budget {
    /// A ledger with these caps.
    pub fn new(caps: Caps) -> Self {
        Self(Arc::new(Ledger { caps, parent: None, books: Mutex::default() }))
    }

    /// A ledger with caps of its own that draws on this one too.
    #[must_use]
    pub fn child(&self, caps: Caps) -> Self {
        Self(Arc::new(Ledger { caps, parent: Some(self.clone()), books: Mutex::default() }))
    }

    /// Sets `amounts` aside, here and in every ledger above.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] with the context key `budget` if that would pass a cap; nothing is set aside then.
    pub fn reserve(&self, amounts: Amounts) -> Result<Reservation> {
        let above = self.0.parent.as_ref().map(|parent| parent.reserve(amounts)).transpose()?;
        let mut books = self.books();
        let would = books.settled.zip(books.reserved, u64::saturating_add).zip(amounts, u64::saturating_add);
        if let Some((what, used, cap)) = would.over(&self.0.caps) {
            let message = format!("budget used up: {used} {what} would pass the cap of {cap}");
            return Err(Error::new(ErrorKind::Limit, message).with_context("budget", what));
        }
        books.reserved = books.reserved.zip(amounts, u64::saturating_add);
        drop(books);
        Ok(Reservation { budget: self.clone(), amounts, above: above.map(Box::new), open: true })
    }

    /// True if neither this ledger nor one above has a cap: there is nothing to reserve.
    pub fn is_unlimited(&self) -> bool {
        self.0.caps == Caps::default() && self.0.parent.as_ref().is_none_or(Self::is_unlimited)
    }

    /// What was used and settled.
    pub fn settled(&self) -> Amounts {
        self.books().settled
    }

    /// What is set aside for calls under way.
    pub fn reserved(&self) -> Amounts {
        self.books().reserved
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Amounts set aside for one call. Dropped unsettled, they are given back.
#[must_use = "what is dropped is given back"]
pub struct Reservation {
    budget: Budget,
    amounts: Amounts,
    above: Option<Box<Self>>,
    open: bool,
}

impl Reservation {
    /// Books what was really used and gives the rest back.
    pub fn settle(mut self, used: Amounts) {
        self.close(used);
    }

    fn close(&mut self, used: Amounts) {
        if std::mem::take(&mut self.open) {
            let mut books = self.budget.books();
            books.reserved = books.reserved.zip(self.amounts, u64::saturating_sub);
            books.settled = books.settled.zip(used, u64::saturating_add);
        }
        if let Some(above) = &mut self.above {
            above.close(used);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(Amounts::none());
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let books = *self.books();
        f.debug_struct("Budget")
            .field("caps", &self.0.caps)
            .field("settled", &books.settled)
            .field("reserved", &books.reserved)
            .finish()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.amounts).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(cap: u64) -> Caps {
        Caps { tokens: Some(cap), ..Caps::default() }
    }

    #[test]
    fn a_dropped_reservation_is_given_back_everywhere() {
        let root = Budget::new(tokens(10));
        let child = root.child(tokens(5));
        drop(child.reserve(Amounts::none().tokens(5)).expect("fits"));
        assert_eq!((root.reserved().tokens, child.reserved().tokens), (0, 0));
    }

    #[test]
    fn a_child_never_exceeds_its_parent_and_a_refusal_reserves_nothing() {
        let root = Budget::new(tokens(10));
        let (a, b) = (root.child(tokens(8)), root.child(tokens(8)));
        let _held = a.reserve(Amounts::none().tokens(8)).expect("fits");
        assert_eq!(b.reserve(Amounts::none().tokens(8)).expect_err("refused").kind(), ErrorKind::Limit);
        assert_eq!((root.reserved().tokens, b.reserved().tokens), (8, 0));
        let e = a.reserve(Amounts::none().tokens(1)).expect_err("over its own cap");
        assert!(e.message().contains("cap of 8"));
        assert_eq!(root.reserved().tokens, 8, "what the parent had set aside is back");
    }
}
