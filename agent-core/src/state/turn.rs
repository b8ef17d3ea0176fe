//! What comes next in a run, and how far the calls of its open turn are.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::RunState;
use crate::{
    message::AssistantMessage,
    state::Exit,
    tooling::{Effect, ToolOutput},
};

/// What comes next in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// A model call.
    #[default]
    BeforeModel,
    /// The rest of a turn's tool calls.
    Tools(PendingTurn),
    /// The hooks that are asked whether the run may end.
    Exit(Exit),
    /// Nothing: the run is over, and the run above it has not taken its answer yet.
    Ended(Exit),
}

/// A tool that was begun and left no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Begun {
    /// What repeating it would do.
    pub effect: Effect,
    /// The attempt at the run that began it.
    pub attempt: Arc<str>,
}

impl Begun {
    /// A tool of this effect, begun by this attempt.
    pub fn new(effect: Effect, attempt: Arc<str>) -> Self {
        Self { effect, attempt }
    }
}

/// A message with tool calls that is not in the history yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingTurn {
    /// The message.
    pub message: AssistantMessage,
    /// Its calls, in call order.
    pub calls: Vec<PendingCall>,
}

impl PendingTurn {
    /// A turn of which no call was run yet.
    pub fn new(message: AssistantMessage) -> Self {
        let todo = |id: &Arc<str>| PendingCall { call_id: id.clone(), state: CallState::Todo };
        let calls = message.calls().map(|c| todo(&c.id)).collect();
        Self { message, calls }
    }

    /// The ids of the calls that are not answered.
    pub fn open_calls(&self) -> impl Iterator<Item = &str> {
        let open = self.calls.iter().filter(|call| !matches!(call.state, CallState::Done(_)));
        open.map(|call| &*call.call_id)
    }
}

/// One call of a [`PendingTurn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// The call.
    pub call_id: Arc<str>,
    /// How far it is.
    pub state: CallState,
}

/// How far a pending call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// Not run.
    Todo,
    /// Answered: never run again, whatever becomes of its siblings.
    Done(ToolOutput),
    /// Waiting; a sub-agent's call holds where the sub-agent stands.
    Suspended {
        /// The sub-agent's checkpoint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<Box<RunState>>,
    },
}
