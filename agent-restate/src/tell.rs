//! What comes to a session's object from outside, and what it says.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Answer, Message};
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
