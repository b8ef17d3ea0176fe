//! Rules that decide which errors move on to the next model.

use std::{collections::HashSet, fmt};

use agent_core::{Error, ErrorKind};

type When = dyn Fn(&Error) -> bool + Send + Sync;

pub(super) struct Rules {
    pub(super) kinds: HashSet<ErrorKind>,
    pub(super) when: Option<Box<When>>,
}

impl Default for Rules {
    fn default() -> Self {
        let kinds = [
            ErrorKind::ContextOverflow,
            ErrorKind::RateLimited,
            ErrorKind::Overloaded,
            ErrorKind::Authentication,
            ErrorKind::Quota,
            ErrorKind::Truncated,
            ErrorKind::Timeout,
            ErrorKind::Transport,
            ErrorKind::Protocol,
            ErrorKind::Provider,
        ];
        Self { kinds: kinds.into(), when: None }
    }
}

impl Rules {
    pub(super) fn moves_on(&self, error: &Error) -> bool {
        let named = || self.kinds.contains(&error.kind()) || self.when.as_ref().is_some_and(|when| when(error));
        !concerns_the_run(error.kind()) && named()
    }
}

/// Returns true for errors that would occur with every model.
pub(super) fn concerns_the_run(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Interrupted
            | ErrorKind::Cancelled
            | ErrorKind::Stopped
            | ErrorKind::Limit
            | ErrorKind::Busy
            | ErrorKind::Stale
            | ErrorKind::Store
            | ErrorKind::NonDeterminism
    )
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("kinds", &self.kinds).field("when", &self.when.is_some()).finish()
    }
}
