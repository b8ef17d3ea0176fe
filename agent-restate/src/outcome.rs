//! [`Outcome`].

use std::sync::Arc;

use agent_core::{ErrorKind, Usage, journal::RunStatus};
use serde::{Deserialize, Serialize};

/// How a run ended: what its invocation gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run: Arc<str>,
    /// How it ended.
    pub status: RunStatus,
    /// The final text of a finished run; none if it is of more than 14 MiB: then the error says so, and the session has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What kind of failure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// What it used with all its sub-agents.
    #[serde(default)]
    pub usage: Usage,
}
