//! [`RunStatus`]: how a run ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ExitReason;

/// How a run ended, or stopped for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// It is done.
    Finished(ExitReason),
    /// It waits for answers.
    Interrupted,
    /// It was paused.
    Paused,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed,
    /// In a way that this release does not know.
    #[serde(untagged)]
    Other(Value),
}
