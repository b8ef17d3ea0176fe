//! Retry policy: which errors are retried, and after which delay.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use agent_core::{Error, ErrorKind, Result, Retry, model::Backoff};
use tower::retry::budget::Budget;

/// Context key of an error for the number of attempts made.
const TRIED: &str = "tried";

/// Returns the number of attempts behind `error`: more than one if the model retries internally.
fn tried(error: &Error) -> u32 {
    error.context(TRIED).and_then(|times| times.parse().ok()).unwrap_or(1).max(1)
}

/// Settings of a layer.
#[derive(Clone, Default)]
pub(super) struct Policy {
    pub(super) backoff: Backoff,
    pub(super) kinds: HashMap<ErrorKind, Backoff>,
    pub(super) budget: Option<Arc<dyn Budget + Send + Sync>>,
    /// True if its errors carry the number of attempts, for an outer layer to count.
    pub(super) tells_tries: bool,
}

impl Policy {
    /// Returns the delay before the next attempt after `failed` failed ones, the last of them with
    /// `error`; `None` if there must be no further attempt.
    fn delay(&self, failed: u32, error: &Error) -> Option<Duration> {
        let asked = match error.retry() {
            Retry::Temporary(asked) => asked,
            Retry::Unknown if self.kinds.contains_key(&error.kind()) => None,
            _ => return None,
        };
        let delay = self.backoff(error).delay(failed, asked)?;
        self.budget.as_ref().is_none_or(|budget| budget.withdraw()).then_some(delay)
    }

    /// Prepares an error after which there is no further attempt.
    fn give_up(&self, error: Error) -> Error {
        self.backoff(&error).give_up(error)
    }

    /// Returns the delay before the next attempt of a call that failed with `error`, together with
    /// that error. `failed` is the running number of failed attempts.
    ///
    /// # Errors
    /// The call's error if there must be no further attempt.
    pub(super) fn next(&self, failed: &mut u32, error: Error) -> Result<(Duration, Error)> {
        *failed += tried(&error);
        match self.delay(*failed, &error) {
            Some(delay) => Ok((delay, error)),
            None => {
                let error = self.give_up(error);
                let tells = self.tells_tries && *failed > 1;
                Err(if tells { error.with_context(TRIED, failed.to_string()) } else { error })
            }
        }
    }

    fn backoff(&self, error: &Error) -> &Backoff {
        self.kinds.get(&error.kind()).unwrap_or(&self.backoff)
    }

    /// Records a successful call.
    pub(super) fn answered(&self) {
        if let Some(budget) = &self.budget {
            budget.deposit();
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("backoff", &self.backoff)
            .field("kinds", &self.kinds)
            .field("budget", &self.budget.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again_and_what_nobody_knows_only_if_it_is_named() {
        let (kind, soon) = (ErrorKind::Unexpected, Backoff::new().jitter(0.0));
        let tried = |policy: &Policy, retry| policy.delay(1, &Error::new(kind, "why").with_retry(retry)).is_some();
        let mut policy = Policy::default();
        let all = [Retry::Permanent, Retry::Unknown, Retry::Temporary(None)];
        assert_eq!(all.map(|retry| tried(&policy, retry)), [false, false, true]);
        policy.kinds.insert(kind, soon);
        assert_eq!(all.map(|retry| tried(&policy, retry)), [false, true, true]);
        policy.kinds.insert(kind, soon.retries(0));
        assert_eq!(all.map(|retry| tried(&policy, retry)), [false; 3]);
    }
}
