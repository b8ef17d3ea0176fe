//! Background sub-agents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Checkpoint;

/// A background sub-agent that was running when its caller stopped, and whose end was not reported
/// to the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackgroundRun {
    /// Key of the sub-agent.
    pub key: String,
    /// Id of the call that started it.
    pub call_id: Arc<str>,
    /// Run id of the sub-agent.
    pub run: Arc<str>,
    /// Checkpoint of the sub-agent; `None` if it was lost before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
}

impl BackgroundRun {
    /// Creates the record of the run `run` of the sub-agent `key`, started by the call `call_id`.
    pub fn new(
        key: impl Into<String>,
        call_id: Arc<str>,
        run: Arc<str>,
        checkpoint: impl Into<Option<Box<Checkpoint>>>,
    ) -> Self {
        Self { key: key.into(), call_id, run, checkpoint: checkpoint.into() }
    }
}
