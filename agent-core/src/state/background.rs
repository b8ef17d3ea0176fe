//! Sub-agents that run while their caller goes on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Checkpoint;

/// A sub-agent that ran in the background when its caller stopped, and of whose end the caller does not know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackgroundRun {
    /// The sub-agent's key.
    pub key: String,
    /// The call that started it.
    pub call_id: Arc<str>,
    /// Its run.
    pub run: Arc<str>,
    /// Where it stands; none if it was lost before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
}

impl BackgroundRun {
    /// The run `run` of the sub-agent under `key`, started by the call `call_id`.
    pub fn new(
        key: impl Into<String>,
        call_id: Arc<str>,
        run: Arc<str>,
        checkpoint: impl Into<Option<Box<Checkpoint>>>,
    ) -> Self {
        Self { key: key.into(), call_id, run, checkpoint: checkpoint.into() }
    }
}
