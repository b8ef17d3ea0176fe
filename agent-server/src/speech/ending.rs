//! How a run ended, as clients are told.

use agent::{Error, ErrorKind, ExitReason, Question, Result, RunEnd};

/// The kind of the question that a call of a client's tool is: its answer is the call's result.
pub(crate) const CLIENT_TOOL: &str = "client_tool";

/// How a run ended, as far as a client is told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// It is done.
    Finished {
        /// The final text.
        answer: String,
        /// Why it ended.
        reason: ExitReason,
    },
    /// It waits for answers to these.
    Interrupted(Vec<Question>),
    /// It was paused.
    Paused,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed {
        /// What went wrong.
        kind: ErrorKind,
        /// The same, for people.
        message: String,
    },
}

impl Ending {
    /// The ending of a run that ended so.
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

    /// True if it waits for results of tools that the client brought, and for nothing else.
    pub(crate) fn waits_for_client(&self) -> bool {
        match self {
            Self::Interrupted(questions) => {
                !questions.is_empty() && questions.iter().all(|question| question.kind == CLIENT_TOOL)
            }
            _ => false,
        }
    }

    /// The ending of a run that failed. What is of no use to a client goes to the log.
    pub fn failed(error: &Error) -> Self {
        let message = match error.kind() {
            ErrorKind::Store | ErrorKind::Middleware | ErrorKind::NonDeterminism | ErrorKind::Unexpected => {
                tracing::error!(error = %error, "a run failed");
                "the run failed: the server's log says why".to_owned()
            }
            _ => error.message().to_owned(),
        };
        Self::Failed { kind: error.kind(), message }
    }
}

/// The name of a kind of error, as JSON has it.
pub(crate) fn code(kind: ErrorKind) -> String {
    let name = serde_json::to_value(kind).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
