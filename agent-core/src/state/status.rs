//! [`RunStatus`]: the outcome of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ExitReason;

/// Outcome of a run that ended or was suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// The run is finished.
    Finished(ExitReason),
    /// The run waits for answers.
    Interrupted,
    /// The run was paused.
    Paused,
    /// The run was cancelled.
    Cancelled,
    /// The run failed.
    Failed,
    /// A status written by a newer release.
    #[serde(untagged)]
    Other(Value),
}
