//! Public view of a run.

use agent::{
    ExitReason, Question, SessionId, Usage,
    journal::{RunStatus as PersistedRequest, RunSummary},
};
use serde::{Deserialize, Serialize};

use super::brought::{Over, PersistedRequest as Asked};

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// Queued behind another run of its session.
    Queued,
    /// Active: in this process, or in the execution backend.
    Running,
    /// Waiting for answers.
    Waiting,
    /// Paused.
    Paused,
    /// Cancelled.
    Cancelled,
    /// Finished.
    Finished,
    /// Failed.
    Failed,
    /// Not active in this process, and without an end in the journal: another process drives it, or
    /// its process died and it is resumed soon.
    Stopped,
}

impl RunStatus {
    /// Derives the status from the journal.
    pub(super) fn of(kept: Option<&PersistedRequest>) -> Self {
        match kept {
            Some(PersistedRequest::Finished(_)) => Self::Finished,
            Some(PersistedRequest::Interrupted) => Self::Waiting,
            Some(PersistedRequest::Paused) => Self::Paused,
            Some(PersistedRequest::Cancelled) => Self::Cancelled,
            Some(PersistedRequest::Failed) => Self::Failed,
            _ => Self::Stopped,
        }
    }

    /// Derives the status of a run that did not begin from its persisted request.
    pub(super) fn of_kept(kept: Option<&Asked>) -> Self {
        match kept.map(|kept| &kept.over) {
            Some(Some(Over::Cancelled)) => Self::Cancelled,
            Some(Some(Over::Refused(_))) => Self::Failed,
            Some(None) => Self::Queued,
            None => Self::Stopped,
        }
    }

    /// True if the run is finished, failed or cancelled: it does not resume automatically.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }
}

/// Public view of a run: the response of most requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunView {
    /// Id of the run.
    pub run: String,
    /// Name of the agent.
    pub agent: String,
    /// Session's name, as the client knows it.
    pub session: String,
    /// Status of the run.
    pub status: RunStatus,
    /// True if the run is active in this process.
    pub live: bool,
    /// Time of its beginning: milliseconds since 1970, UTC.
    pub started: u64,
    /// Time at which the run ended, was suspended, or failed permanently.
    pub ended: Option<u64>,
    /// Number of steps so far.
    pub steps: u32,
    /// Usage of the run without its sub-agents; updated when it ends or is suspended.
    pub usage: Usage,
    /// Reason for the end of a finished run.
    pub reason: Option<ExitReason>,
    /// Message of the error that ended the run.
    pub error: Option<String>,
    /// Final text of a finished run; not in lists.
    pub answer: Option<String>,
    /// Open questions.
    pub questions: Vec<Question>,
}

impl RunView {
    /// Creates the view of a run that is not active in this process, from its summary.
    pub(super) fn of_summary(run: RunSummary) -> Self {
        let reason = match &run.status {
            Some(PersistedRequest::Finished(reason)) => Some(reason.clone()),
            _ => None,
        };
        let session = SessionId::parse(&run.session).map_or(run.session, |id| id.session().to_owned());
        Self {
            run: run.run.to_string(),
            agent: run.agent.to_string(),
            session,
            status: RunStatus::of(run.status.as_ref()),
            live: false,
            started: run.started,
            ended: run.ended,
            steps: run.steps,
            usage: run.usage,
            reason,
            error: run.error,
            answer: None,
            questions: run.questions,
        }
    }
}
