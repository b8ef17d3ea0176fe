//! What a compaction leaves alone because it is recent.

use serde::{Deserialize, Serialize};

use super::{Task, Unit};

/// The newest part of a conversation, which a strategy leaves as it is. A call and its results are never divided: a rule
/// that would keep a part of them keeps all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Keep {
    /// So many messages.
    Messages(usize),
    /// So many iterations: what the model said with the results of its calls, and what the user said just before.
    Iterations(usize),
    /// So many rounds: what a user said and everything up to the next user.
    UserRounds(usize),
    /// As many messages as fit into so many tokens.
    Tokens(u64),
}

impl Default for Keep {
    /// Three iterations.
    fn default() -> Self {
        Self::Iterations(3)
    }
}

impl Keep {
    /// Where what is kept begins.
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

/// True if an iteration begins at `at`: with the user's words before an answer, or with the answer.
fn begins_iteration(units: &[Unit], at: usize) -> bool {
    let speaks = |unit: &Unit| unit.is_user();
    let follows_user = at > 0 && speaks(&units[at - 1]);
    match &units[at] {
        unit if speaks(unit) => !follows_user,
        unit => unit.is_assistant() && !follows_user,
    }
}

/// Where the `n`th newest beginning is; the end if nothing is to be kept, the start if there are not so many.
fn nth_newest(units: &[Unit], n: usize, begins: impl Fn(&[Unit], usize) -> bool) -> usize {
    match n.checked_sub(1) {
        None => units.len(),
        Some(before) => (0..units.len()).rev().filter(|at| begins(units, *at)).nth(before).unwrap_or(0),
    }
}

/// How far back `most` reaches. With `whole`, the unit that passes it is kept too.
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
