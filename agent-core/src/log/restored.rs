//! Results of the current step that an attempt before a restart left.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    llm::ModelResponse,
    state::{Begun, RunState},
    tooling::ToolOutput,
};

/// Results that replace calls, and calls in doubt, left by an attempt before a restart for the
/// current step.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// The model's answers, if no hook has accepted them yet.
    answers: VecDeque<Arc<ModelResponse>>,
    /// Results of unanswered calls; `None` where the result has already been taken.
    outputs: BTreeMap<Arc<str>, Option<ToolOutput>>,
    /// Calls that began and have no result.
    begun: BTreeMap<Arc<str>, Begun>,
    /// Decisions that have not been read back yet.
    decisions: VecDeque<(String, Value)>,
}

impl Restored {
    pub(super) fn of(checkpoint: &RunState) -> Self {
        let outputs = checkpoint.finished.iter().map(|(id, output)| (id.as_str().into(), Some(output.clone())));
        Self {
            answers: checkpoint.answered.iter().cloned().collect(),
            outputs: outputs.collect(),
            begun: checkpoint.begun.iter().map(|(id, begun)| (id.as_str().into(), begun.clone())).collect(),
            decisions: checkpoint.decisions.iter().cloned().collect(),
        }
    }

    pub(super) fn next_answer(&mut self) -> Option<Arc<ModelResponse>> {
        self.answers.pop_front()
    }

    /// Takes the result of a call; later calls return `None`.
    pub(super) fn take_output(&mut self, call_id: &str) -> Option<ToolOutput> {
        self.outputs.get_mut(call_id)?.take()
    }

    /// True if the newest result of a call comes from an earlier attempt.
    pub(super) fn has_output(&self, call_id: &str) -> bool {
        self.outputs.contains_key(call_id)
    }

    pub(super) fn forget_output(&mut self, call_id: &str) {
        self.outputs.remove(call_id);
    }

    pub(super) fn in_doubt(&self, call_id: &str) -> Option<Begun> {
        self.begun.get(call_id).cloned()
    }

    pub(super) fn clear_doubt(&mut self, call_id: &str) {
        self.begun.remove(call_id);
    }

    /// Takes the decision made under `name`. Other decisions stay for the hooks that made them, if
    /// these run again.
    pub(super) fn take_decision(&mut self, name: &str) -> Option<Value> {
        let at = self.decisions.iter().position(|(made, _)| made == name)?;
        Some(self.decisions.remove(at)?.1)
    }

    pub(super) fn is_decided(&self, name: &str) -> bool {
        self.decisions.iter().any(|(made, _)| made == name)
    }
}
