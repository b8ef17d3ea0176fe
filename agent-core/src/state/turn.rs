//! Phases of a run, and the progress of an open turn's calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::RunState;
use crate::{
    message::AssistantMessage,
    state::Exit,
    tooling::{Effect, ToolOutput},
};

/// The next action of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// A model call.
    #[default]
    BeforeModel,
    /// The remaining tool calls of a turn.
    Tools(PendingTurn),
    /// The hooks that decide about the run's end.
    Exit(Exit),
    /// None: the run has ended, and its parent has not taken the answer yet.
    Ended(Exit),
}

/// A tool call that began and has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Begun {
    /// Effect class: the consequence of repeating the call.
    pub effect: Effect,
    /// Nonce of the attempt that began it.
    pub attempt: Arc<str>,
}

impl Begun {
    /// Creates the record of a call.
    pub fn new(effect: Effect, attempt: Arc<str>) -> Self {
        Self { effect, attempt }
    }
}

/// A message with tool calls that is not in the history yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingTurn {
    /// The message with the calls.
    pub message: AssistantMessage,
    /// State of each call, in call order.
    pub calls: Vec<PendingCall>,
}

impl PendingTurn {
    /// Creates a turn in which no call has run yet.
    pub fn new(message: AssistantMessage) -> Self {
        let todo = |id: &Arc<str>| PendingCall { call_id: id.clone(), state: CallState::Todo };
        let calls = message.calls().map(|c| todo(&c.id)).collect();
        Self { message, calls }
    }

    /// Ids of the unanswered calls.
    pub fn open_calls(&self) -> impl Iterator<Item = &str> {
        let open = self.calls.iter().filter(|call| !matches!(call.state, CallState::Done(_)));
        open.map(|call| &*call.call_id)
    }
}

/// One call of a [`PendingTurn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// Id of the call.
    pub call_id: Arc<str>,
    /// Progress of the call.
    pub state: CallState,
}

/// Progress of a pending call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallState {
    /// Not started.
    Todo,
    /// Answered: never executed again, whatever happens to the other calls.
    Done(ToolOutput),
    /// Waiting, such as for sub-agents, which are among the run's [`children`](RunState::children).
    Suspended {
        /// The checkpoint of its sub-agent, in a checkpoint of a release that kept it here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<Box<RunState>>,
    },
}
