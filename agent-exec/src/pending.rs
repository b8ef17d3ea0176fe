//! Open tool calls of a suspended run.

use agent_core::{
    Checkpoint, Error, Result, exact,
    run::checkpoint::{CallState, PendingTurn, Phase},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Agent;

/// A tool call that is not answered yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingCall {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Description of the tool; empty if the agent does not have it.
    pub description: String,
    /// Arguments as the model wrote them, without injected ones.
    pub arguments: Value,
    /// Ids of the questions about this call.
    pub questions: Vec<String>,
}

impl Agent {
    /// Returns the calls that a run waits for: those with a question or, if no call has one, all
    /// unanswered calls.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the run is not in its tool phase.
    pub fn waiting_calls(&self, checkpoint: &Checkpoint) -> Result<Vec<WaitingCall>> {
        let open = self.open_calls(checkpoint)?;
        let asked: Vec<_> = open.iter().filter(|call| !call.questions.is_empty()).cloned().collect();
        Ok(if asked.is_empty() { open } else { asked })
    }

    /// Returns all unanswered calls, with or without a question.
    ///
    /// # Errors
    /// As [`waiting_calls`](Self::waiting_calls).
    pub fn open_calls(&self, checkpoint: &Checkpoint) -> Result<Vec<WaitingCall>> {
        let Phase::Tools(turn) = &checkpoint.phase else {
            return Err(Error::config("the run does not stand at tool calls: there are none that wait"));
        };
        Ok(open(turn).map(|(call_id, tool, arguments)| self.waiting(checkpoint, call_id, tool, arguments)).collect())
    }

    fn waiting(&self, checkpoint: &Checkpoint, call_id: &str, tool: &str, arguments: &str) -> WaitingCall {
        let description = self.parts.executor.tools.own.get(tool).map(|entry| entry.spec.description.clone());
        let is_about = |id: &str| id.strip_prefix(call_id).is_some_and(|rest| rest.starts_with('/'));
        let questions = checkpoint.questions.iter().map(|question| &question.id).filter(|id| is_about(id));
        WaitingCall {
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            description: description.unwrap_or_default(),
            arguments: exact::from_str(arguments).unwrap_or_else(|_| arguments.into()),
            questions: questions.cloned().collect(),
        }
    }
}

fn open(turn: &PendingTurn) -> impl Iterator<Item = (&str, &str, &str)> {
    let calls = turn.message.calls().zip(&turn.calls);
    let open = calls.filter(|(_, pending)| !matches!(pending.state, CallState::Done(_)));
    open.map(|(call, _)| (&*call.id, &*call.name, call.arguments.as_str()))
}
