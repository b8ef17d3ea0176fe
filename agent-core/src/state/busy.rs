//! Policies for runs that find their session busy.

use serde::{Deserialize, Serialize};

/// Policy for a run that finds its session held by another run of the same root agent.
///
/// A session has one writer for each root agent. The policy is set on the agent's builder or on the
/// request; the request wins. Within one process it covers all runs of one agent and its clones.
/// Across processes, or between agents that were built separately, a run can wait for the session
/// ([`Queue`](Self::Queue)) or avoid it ([`Fork`](Self::Fork)), but not reach the other run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum WhenBusy {
    /// Fail with [`ErrorKind::Busy`](crate::ErrorKind::Busy).
    #[default]
    Reject,
    /// Wait for the session: in order within this process, in any order among processes. Cancelling
    /// the run ends the wait. Waiting runs are not persisted.
    Queue {
        /// Maximum number of waiting runs; one more fails with
        /// [`ErrorKind::Busy`](crate::ErrorKind::Busy).
        limit: usize,
    },
    /// Pass the messages to the running run, and end as that run does. If the running run is about
    /// to end and accepts no more messages, the new run starts afterwards. The new run has no
    /// events unless it starts.
    Steer,
    /// Run in a new session whose name begins with the old name, and whose content is that of the
    /// old session when the running run began. [`RunIds::session`](crate::RunIds) of the end
    /// contains the name.
    Fork,
}

/// Policy for a run with new messages that finds the agent's newest run in the session waiting for
/// answers.
///
/// A run also waits if it failed, or died with its process, while a call was running whose
/// repetition is not safe: its next attempt asks whether that call had its effect. Otherwise a run
/// that was paused, cancelled, or failed is not waiting.
///
/// Set on the agent's builder or on the request; the request wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhenWaiting {
    /// Fail with [`ErrorKind::Busy`](crate::ErrorKind::Busy); the error's checkpoint contains the
    /// questions. An unrelated message must not decide a question that a person was asked.
    #[default]
    Reject,
    /// Run. The questions stay unanswered, and the model is informed that the calls they were about
    /// gave no result, or that their outcome is unknown.
    Supersede,
}

impl WhenBusy {
    /// [`Queue`](Self::Queue) with a limit of 64.
    pub const fn queue() -> Self {
        Self::Queue { limit: 64 }
    }
}
