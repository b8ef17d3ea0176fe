//! Retention of the recent part of a conversation.

use serde::{Deserialize, Serialize};

use super::{Task, Unit};

/// The newest part of a conversation, which a strategy leaves unchanged. A call and its results are
/// never separated: a rule that would keep part of them keeps all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Keep {
    /// This many messages.
    Messages(usize),
    /// This many iterations: a model response with the results of its calls, and the user messages
    /// directly before it.
    Iterations(usize),
    /// This many rounds: a user message and everything up to the next one.
    UserRounds(usize),
    /// As many messages as fit into this many tokens.
    Tokens(u64),
}

impl Default for Keep {
    /// Three iterations.
    fn default() -> Self {
        Self::Iterations(3)
    }
}

impl Keep {
    /// Returns the index where the kept part begins.
    pub fn start(&self, task: &Task<'_>, units: &[Unit]) -> usize {
        match *self {
            Self::Messages(most) => backwards(units, most as u64, |unit| unit.size() as u64, true),
            Self::Tokens(most) => backwards(units, most, |unit| task.tokens(unit), false),
            Self::Iterations(n) => nth_newest(units, n, begins_iteration),
            Self::UserRounds(n) => {
                nth_newest(units, n, |units, at| units[at].is_user() && (at == 0 || !units[at - 1].is_user()))
            }
        }
    }
}

/// True if an iteration begins at `at`: with the user messages before a response, or with the
/// response.
fn begins_iteration(units: &[Unit], at: usize) -> bool {
    let speaks = |unit: &Unit| unit.is_user();
    let follows_user = at > 0 && speaks(&units[at - 1]);
    match &units[at] {
        unit if speaks(unit) => !follows_user,
        unit => unit.is_assistant() && !follows_user,
    }
}

/// Returns the index of the `n`th newest beginning; the end if `n` is 0, the start if there are
/// fewer.
fn nth_newest(units: &[Unit], n: usize, begins: impl Fn(&[Unit], usize) -> bool) -> usize {
    match n.checked_sub(1) {
        None => units.len(),
        Some(before) => (0..units.len()).rev().filter(|at| begins(units, *at)).nth(before).unwrap_or(0),
    }
}

/// Returns the index that `most` reaches back to. With `whole`, the unit that exceeds it is kept
/// too.
fn backwards(units: &[Unit], most: u64, size: impl Fn(&Unit) -> u64, whole: bool) -> usize {
    let (mut at, mut sum) = (units.len(), 0);
    while at > 0 && sum < most {
        sum += size(&units[at - 1]);
        if sum > most && !whole {
            break;
        }
        at -= 1;
    }
    at
}
