//! What a run does that finds its session taken.

use serde::{Deserialize, Serialize};

/// What a run does that finds its session held by another run of the same root agent.
///
/// A session has one writer for each root agent. Said on the agent's builder, or on the request, which wins. In one process
/// it holds among all runs of one agent and its clones. Among processes, or agents that were built apart, a run can wait for
/// the session ([`Queue`](Self::Queue)) or leave it alone ([`Fork`](Self::Fork)), but not reach the other run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum WhenBusy {
    /// It fails with [`ErrorKind::Busy`](crate::ErrorKind::Busy).
    #[default]
    Reject,
    /// It waits for its turn: in order within this process, in any order among processes. Cancelling it ends the wait. What
    /// waits is not written down.
    Queue {
        /// How many may wait; one more fails with [`ErrorKind::Busy`](crate::ErrorKind::Busy).
        limit: usize,
    },
    /// Its messages are put into the run that is under way, and it ends as that one does. If that one is about to end and
    /// takes no more messages, it runs itself then. It has no events of its own unless it runs.
    Steer,
    /// It runs in a new session, whose name begins with that of the old one and which begins with what the session held when
    /// the run under way began. [`RunIds::session`](crate::RunIds) in its end tells the name.
    Fork,
}

/// What a run with new messages does that finds the newest run of its agent in the session waiting for answers.
///
/// Said on the agent's builder, or on the request, which wins. A run that was paused, cancelled, or failed waits for nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WhenWaiting {
    /// It fails with [`ErrorKind::Busy`](crate::ErrorKind::Busy), whose checkpoint has the questions: what a person was asked
    /// to decide is not decided by somebody who says something else.
    #[default]
    Reject,
    /// It runs. The questions are answered by nobody, and the model is told that the calls they were about gave no result.
    Supersede,
}

impl WhenBusy {
    /// [`Queue`](Self::Queue), with room for 64.
    pub const fn queue() -> Self {
        Self::Queue { limit: 64 }
    }
}
