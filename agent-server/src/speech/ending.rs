//! Ending of a run, in the form for clients.

use agent::{Error, ErrorKind, ExitReason, Question, Result, RunEnd};

/// Kind of the question that a call of a client-side tool asks: its answer is the call's result.
pub(crate) const CLIENT_TOOL: &str = "client_tool";

/// Ending of a run, as far as clients see it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// The run is finished.
    Finished {
        /// Final text.
        answer: String,
        /// Reason for the end.
        reason: ExitReason,
    },
    /// The run waits for answers to these questions.
    Interrupted(Vec<Question>),
    /// The run was paused.
    Paused,
    /// The run was cancelled.
    Cancelled,
    /// The run failed.
    Failed {
        /// Kind of the error.
        kind: ErrorKind,
        /// Error message for people.
        message: String,
    },
}

impl Ending {
    /// Converts the end of a run.
    pub fn of(end: &Result<RunEnd>) -> Self {
        match end {
            Ok(RunEnd::Finished(finished)) => {
                Self::Finished { answer: finished.answer.clone(), reason: finished.reason.clone() }
            }
            Ok(RunEnd::Interrupted(checkpoint)) => Self::Interrupted(checkpoint.questions.clone()),
            Ok(RunEnd::Paused(_)) => Self::Paused,
            Ok(RunEnd::Cancelled(_)) => Self::Cancelled,
            Ok(_) => Self::failed(&Error::new(ErrorKind::Unexpected, "the run ended in an unknown way")),
            Err(error) => Self::failed(error),
        }
    }

    /// True if the run waits only for results of client-side tools.
    pub(crate) fn waits_for_client(&self) -> bool {
        match self {
            Self::Interrupted(questions) => {
                !questions.is_empty() && questions.iter().all(|question| question.kind == CLIENT_TOOL)
            }
            _ => false,
        }
    }

    /// Returns the ending of a failed run. Internal causes are only logged.
    pub fn failed(error: &Error) -> Self {
        let message = match error.kind() {
            ErrorKind::Store | ErrorKind::Middleware | ErrorKind::NonDeterminism | ErrorKind::Unexpected => {
                tracing::error!(error = %error, "a run failed");
                "the run failed: see the server's log".to_owned()
            }
            _ => error.message().to_owned(),
        };
        Self::Failed { kind: error.kind(), message }
    }
}

/// Returns the JSON name of an error kind.
pub(crate) fn code(kind: ErrorKind) -> String {
    let name = serde_json::to_value(kind).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
