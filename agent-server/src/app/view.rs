//! A run as clients see it.

use agent::{ExitReason, Question, Usage, journal::RunStatus as Kept};
use serde::{Deserialize, Serialize};

use super::brought::{Kept as Asked, Over};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// It waits for its turn in its session.
    Queued,
    /// It is under way: in this process, or with whoever runs it.
    Running,
    /// It waits for answers.
    Waiting,
    /// It was paused.
    Paused,
    /// It was cancelled.
    Cancelled,
    /// It is done.
    Finished,
    /// It failed.
    Failed,
    /// It is not under way in this process, and its end is not in the journal: another process has it, or it died with one and is
    /// gone on with soon.
    Stopped,
}

impl RunStatus {
    /// Of what the journal has.
    pub(super) fn of(kept: Option<&Kept>) -> Self {
        match kept {
            Some(Kept::Finished(_)) => Self::Finished,
            Some(Kept::Interrupted) => Self::Waiting,
            Some(Kept::Paused) => Self::Paused,
            Some(Kept::Cancelled) => Self::Cancelled,
            Some(Kept::Failed) => Self::Failed,
            _ => Self::Stopped,
        }
    }

    /// Of a run that did not begin, by what is kept of its request.
    pub(super) fn of_kept(kept: Option<&Asked>) -> Self {
        match kept.map(|kept| &kept.over) {
            Some(Some(Over::Cancelled)) => Self::Cancelled,
            Some(Some(Over::Refused(_))) => Self::Failed,
            Some(None) => Self::Queued,
            None => Self::Stopped,
        }
    }

    /// True if it is done, or failed: nothing of it goes on by itself.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

/// A run as clients see it: the answer of most requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunView {
    /// Its id.
    pub run: String,
    /// The agent.
    pub agent: String,
    /// The session, as the client names it.
    pub session: String,
    /// How it stands.
    pub status: RunStatus,
    /// True if it is under way in this process.
    pub live: bool,
    /// When it began: milliseconds since 1970, UTC.
    pub started: u64,
    /// When it ended, stopped for now, or was given up.
    pub ended: Option<u64>,
    /// Steps so far.
    pub steps: u32,
    /// What it used itself, without its sub-agents; counted when it ends or stops.
    pub usage: Usage,
    /// Why it finished.
    pub reason: Option<ExitReason>,
    /// Why it failed.
    pub error: Option<String>,
    /// The final text of a finished run.
    pub answer: Option<String>,
    /// What it waits for.
    pub questions: Vec<Question>,
}
