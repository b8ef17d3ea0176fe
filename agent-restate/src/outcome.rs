//! Outcome of a run on Restate: [`Outcome`].

use std::sync::Arc;

use agent_core::{ErrorKind, Usage, journal::RunStatus};
use serde::{Deserialize, Serialize};

/// Outcome of a run, as its invocation returns it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Id of the run.
    pub run: Arc<str>,
    /// Final status.
    pub status: RunStatus,
    /// Final text of a finished run; none if it exceeds 14 MiB: `error` then says so, and the
    /// session holds the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Message of the error that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Kind of that error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Tokens and cost of the run and all its sub-agents.
    #[serde(default)]
    pub usage: Usage,
}
