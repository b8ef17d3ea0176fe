//! Results of the step that the run's state has from an earlier attempt: they are returned instead
//! of repeating the work.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::RunLog;
use crate::{
    llm::ModelResponse,
    state::{Begun, RunState},
    tooling::ToolOutput,
};

/// Position of this attempt in the results that an earlier one left in the run's
/// [state](RunState). The state also has those that this attempt adds, always behind them.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// Answers of the model that an earlier attempt left.
    answers: usize,
    /// Those that were returned.
    answered: usize,
    /// Calls that were made or looked up in this attempt.
    calls: HashMap<Arc<str>, Looked>,
    /// Decisions by name that were returned or made in this attempt: those of the beginning, and
    /// those of the step.
    decisions: HashMap<(bool, String), usize>,
}

/// Lookups of a call in this attempt.
#[derive(Debug, Default)]
struct Looked {
    /// Its result was looked up.
    output: bool,
    /// Its newest result is of an earlier attempt.
    is_earlier: bool,
    /// The outcome of the earlier attempt at it is known.
    settled: bool,
}

impl Cursor {
    /// Creates a cursor at the start of the results in `state`.
    pub(super) fn of(state: &RunState) -> Self {
        Self { answers: state.answered.len(), ..Self::default() }
    }

    /// Ends the step, whose results the state drops.
    pub(super) fn end_step(&mut self) {
        let beginning = std::mem::take(&mut self.decisions).into_iter().filter(|((is_beginning, _), _)| *is_beginning);
        *self = Self { decisions: beginning.collect(), ..Self::default() };
    }

    /// Notes that a call has a result of this attempt.
    pub(super) fn finished(&mut self, call_id: &str) {
        if let Some(call) = self.calls.get_mut(call_id) {
            call.is_earlier = false;
        }
    }

    /// True if the newest result of a call is of an earlier attempt.
    pub(super) fn is_earlier(&self, call_id: &str) -> bool {
        self.calls.get(call_id).is_some_and(|call| call.is_earlier)
    }
}

impl RunLog {
    /// Returns the next of the model's answers that an earlier attempt left: it replaces the call,
    /// and was counted when it came.
    pub fn stored_answer(&self) -> Option<ModelResponse> {
        let mut open = self.open();
        if open.cursor.answered == open.cursor.answers {
            return None;
        }
        let answer = self.look(|_, state| state.answered.get(open.cursor.answered).cloned())?;
        open.cursor.answered += 1;
        Some((*answer).clone())
    }

    /// Returns the result of a call that an earlier attempt left, once.
    pub(super) fn stored_output(&self, call_id: &Arc<str>) -> Option<ToolOutput> {
        let mut open = self.open();
        let call = open.cursor.calls.entry(call_id.clone()).or_default();
        if std::mem::replace(&mut call.output, true) {
            return None;
        }
        let output = self.look(|_, state| state.finished.get(&**call_id).cloned())?;
        call.is_earlier = true;
        Some(output)
    }

    /// Returns the record of an earlier attempt that began a call and left no result.
    pub(super) fn in_doubt(&self, call_id: &str) -> Option<Begun> {
        let is_settled = self.open().cursor.calls.get(call_id).is_some_and(|call| call.settled);
        let begun = self.look(|_, state| state.begun.get(call_id).cloned())?;
        (!is_settled && begun.attempt != *self.attempt()).then_some(begun)
    }

    /// Notes the outcome of a call in doubt as known.
    pub(super) fn doubt_settled(&self, call_id: &Arc<str>) {
        self.open().cursor.calls.entry(call_id.clone()).or_default().settled = true;
    }

    /// Returns the next decision under `name` that an earlier attempt left. One that is made
    /// instead is the next itself.
    pub(super) fn stored_decision(&self, name: &str) -> Option<Value> {
        let mut open = self.open();
        let is_beginning = !open.entered;
        let nth = open.cursor.decisions.get(&(is_beginning, name.to_owned())).copied().unwrap_or_default();
        let value = self.decided(is_beginning, name, nth)?;
        open.cursor.decisions.insert((is_beginning, name.to_owned()), nth + 1);
        Some(value)
    }

    /// Counts a decision that this attempt made.
    pub(super) fn count_decision(&self, name: &str) {
        let mut open = self.open();
        let key = (!open.entered, name.to_owned());
        *open.cursor.decisions.entry(key).or_default() += 1;
    }

    /// True if an earlier attempt, or the run that is replayed, decided under `name` and nobody has
    /// read it since.
    pub fn is_decided(&self, name: &str) -> bool {
        let open = self.open();
        let is_beginning = !open.entered;
        let nth = open.cursor.decisions.get(&(is_beginning, name.to_owned())).copied().unwrap_or_default();
        let is_known = self.decided(is_beginning, name, nth).is_some();
        drop(open);
        is_known || self.replayed().is_some_and(|replay| replay.is_decided(&self.0.ids.run_id, name))
    }

    fn decided(&self, is_beginning: bool, name: &str, nth: usize) -> Option<Value> {
        self.look(|_, state| {
            let (beginning, step) = state.decisions.split_at(state.beginning.min(state.decisions.len()));
            let made = if is_beginning { beginning } else { step };
            made.iter().filter(|(made, _)| made == name).nth(nth).map(|(_, value)| value.clone())
        })
    }
}
