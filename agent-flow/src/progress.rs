//! Persistent state of a run besides its history.

use std::time::Duration;

use agent_core::{Key, Result, RunCx, StateField};
use serde::{Deserialize, Serialize};

use crate::QueryFile;

/// Key of the state.
pub(crate) const PROGRESS: Key<Progress> = Key::new("flow");

/// Persistent state of a run besides its history; everything else is derived from both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// Index of the run's first message in the session's history.
    pub(crate) start: usize,
    /// Active time of the run in milliseconds, over all processes.
    pub(crate) elapsed_ms: u64,
    /// Number of the run's messages when the time limit for steps was reached.
    pub(crate) cut: Option<usize>,
    /// Files of the query.
    pub(crate) files: Vec<QueryFile>,
}

impl Progress {
    pub(crate) fn field() -> StateField {
        StateField::of::<Self>()
    }

    pub(crate) fn of(cx: &RunCx) -> Result<Self> {
        Ok(cx.state().get(&PROGRESS)?.unwrap_or_default())
    }

    pub(crate) fn keep(&self, cx: &RunCx) -> Result<()> {
        cx.state().set(&PROGRESS, self)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms)
    }

    pub(crate) fn set_elapsed(&mut self, elapsed: Duration) {
        self.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    }
}
