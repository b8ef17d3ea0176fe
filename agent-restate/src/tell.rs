//! Messages of a session object's handlers.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Answer, Message};
use agent_dispatch::RunAddress;
use serde::{Deserialize, Serialize};

use crate::step_log::Told;

/// Signal to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tell {
    /// Inserts this message before the run's next model call.
    Steer(Message),
    /// Pauses the run before its next step.
    Pause,
    /// Ends the run now. Delivered as Restate's own cancellation.
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

/// Input of the `tell` handler: a signal to a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TellRun {
    pub(crate) run: Arc<str>,
    pub(crate) tell: Tell,
}

/// Input of the `answer` handler: answers to the questions of a run, by question id. Empty answers
/// resume a paused run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnswerRun {
    pub(crate) run: Arc<str>,
    pub(crate) answers: BTreeMap<String, Answer>,
}

/// Input of the `read` handler.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadEntries {
    pub(crate) after: u64,
    pub(crate) limit: usize,
}

/// Returns the idempotency key that makes a run one invocation, however often it is sent. The key
/// contains only characters that paths and headers do not escape: Restate compares a key in a path
/// without decoding it.
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
