//! What comes to a session's object from outside, and what it says.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Answer, ErrorKind, Message, Usage, journal::RunStatus};
use serde::{Deserialize, Serialize};

use crate::step_log::Told;

/// What a run is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tell {
    /// It takes this message before its next model call.
    Steer(Message),
    /// It stops before its next step.
    Pause,
    /// It ends now: the engine's own cancellation tells it.
    Cancel,
}

impl Tell {
    pub(crate) fn add_to(self, told: &mut Told) {
        match self {
            Self::Steer(message) => told.steer.push(message),
            Self::Pause => {
                told.pauses += 1;
                told.pause = Some(told.pauses);
            }
            Self::Cancel => told.cancel = true,
        }
    }
}

/// Tells a run something.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TellRun {
    pub(crate) run: Arc<str>,
    pub(crate) tell: Tell,
}

/// Answers the questions of a run, by question id; none lets a paused one go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerRun {
    pub(crate) run: Arc<str>,
    pub(crate) answers: BTreeMap<String, Answer>,
}

/// Asks for entries.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadEntries {
    pub(crate) after: u64,
    pub(crate) limit: usize,
}

/// How a run ended: what its invocation gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run: Arc<str>,
    /// How it ended.
    pub status: RunStatus,
    /// The final text of a finished run.
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
