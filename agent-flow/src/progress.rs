//! What a run keeps beside its history.

use std::time::Duration;

use agent_core::{Key, Result, RunCx, StateField};
use serde::{Deserialize, Serialize};

use crate::QueryFile;

/// The state's key.
pub(crate) const PROGRESS: Key<Progress> = Key::new("flow");

/// What a run keeps beside its history, from which everything else follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// Where the run's messages begin in the session's history.
    pub(crate) start: usize,
    /// How long the run was under way, in all processes together.
    pub(crate) elapsed_ms: u64,
    /// How many of the run's messages there were when the time for steps was up.
    pub(crate) cut: Option<usize>,
    /// The query's files.
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
