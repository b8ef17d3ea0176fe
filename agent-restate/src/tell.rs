//! What comes to a session's object from outside, and what it says.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Answer, Message, dispatch::RunAddress};
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

/// The key by which a run is one invocation, however often it is sent. It is text that paths and headers leave alone: Restate compares a key in a path as
/// it stands there.
pub(crate) fn key(run: &RunAddress) -> String {
    let mut key = String::new();
    for byte in format!("{}:{}", run.agent, run.run).bytes() {
        match byte {
            b'-' | b'.' | b':' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => key.push(byte.into()),
            _ => key.push_str(&format!("={byte:02X}")),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_any_names_have_keys_of_their_own_that_a_path_leaves_alone() {
        let key = |agent: &str, run: &str| key(&RunAddress::new(agent, "s", run));
        assert_eq!(key("a", "0198d0-r_1"), "a:0198d0-r_1");
        assert_eq!(key("a b", "r/1=é"), "a=20b:r=2F1=3D=C3=A9");
        assert_ne!(key("a", "r/1"), key("a", "r=2F1"));
    }
}
