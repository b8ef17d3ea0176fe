//! What the step under way did.

use std::{collections::VecDeque, sync::Arc};

use serde_json::Value;

use crate::{Begun, ModelResponse, ToolOutput};

/// What is known of the step under way, and what was counted and decided before it. In one place, since a step looks at all
/// of it.
#[derive(Default)]
pub(super) struct UnderWay {
    /// What the model gave before hooks saw it, so that only what they changed is written again.
    pub(super) models: Vec<Given<Arc<ModelResponse>>>,
    /// The calls of the model's message, as they are begun.
    pub(super) calls: ByCall<Call>,
    /// How often the run ran each tool.
    pub(super) counts: Vec<(Arc<str>, u32)>,
    /// Results from before a restart, of calls that were not answered: their tools do not run again.
    pub(super) kept: ByCall<ToolOutput>,
    /// Calls that an attempt before a restart began and left without a result.
    pub(super) in_doubt: ByCall<Begun>,
    /// What the model answered before a restart, if no hook accepted it yet.
    pub(super) answered: VecDeque<Arc<ModelResponse>>,
    pub(super) decisions: Decisions,
}

/// What is known of a call.
#[derive(Default)]
pub(super) struct Call {
    /// Its tool, if that was begun.
    pub(super) tool: Option<Arc<str>>,
    /// How it was begun, while it gave nothing: were it to be cut off now, nobody would know what it did.
    pub(super) begun: Option<Begun>,
    /// What the tool gave before hooks saw it.
    pub(super) given: Option<Given<ToolOutput>>,
}

/// Decisions of the run's beginning and of the step under way: those made before a restart that were not read back yet, and
/// all others.
#[derive(Default)]
pub(super) struct Decisions {
    /// None while the run begins.
    pub(super) beginning: Option<Vec<(String, Value)>>,
    pub(super) kept: VecDeque<(String, Value)>,
    pub(super) made: Vec<(String, Value)>,
}

impl Decisions {
    /// True if it holds for the whole run.
    pub(super) fn make(&mut self, name: String, value: Value) -> bool {
        self.made.push((name, value));
        self.beginning.is_none()
    }

    /// What was decided under `name` before. Others stay for whoever made them, if he runs again at all.
    pub(super) fn take_kept(&mut self, name: &str) -> Option<Value> {
        let at = self.kept.iter().position(|(kept, _)| kept == name)?;
        let kept = self.kept.remove(at)?;
        self.made.push(kept.clone());
        Some(kept.1)
    }
}

/// What a model or a tool gave.
pub(super) struct Given<T> {
    pub(super) value: T,
    /// It came before a restart: those who only hear what is written after it are told it whole.
    earlier: bool,
}

impl<T> Given<T> {
    pub(super) fn now(value: T) -> Self {
        Self { value, earlier: false }
    }

    pub(super) fn earlier(value: T) -> Self {
        Self { value, earlier: true }
    }

    /// True if nothing new is to be written of `value`.
    pub(super) fn told(&self, is_same: impl FnOnce(&T) -> bool) -> bool {
        !self.earlier && is_same(&self.value)
    }
}

impl UnderWay {
    /// Forgets the step, or its model call, which is now complete.
    pub(super) fn end_step(&mut self) {
        self.models.clear();
        self.calls.0.clear();
        self.kept.0.clear();
        self.in_doubt.0.clear();
        self.answered.clear();
        self.decisions.made.clear();
        self.decisions.kept.clear();
    }

    /// A call's tool is to be run. Gives its result from before a restart, if there is one.
    pub(super) fn begin_call(&mut self, call_id: &Arc<str>, name: &Arc<str>) -> Option<ToolOutput> {
        self.count(call_id, name);
        let output = self.kept.remove(call_id)?;
        self.calls.entry(call_id).given = Some(Given::earlier(output.clone()));
        Some(output)
    }

    /// A call's tool is run; it counts if it is its first try.
    pub(super) fn count(&mut self, call_id: &Arc<str>, name: &Arc<str>) {
        if self.calls.entry(call_id).tool.replace(name.clone()).is_none() {
            match self.counts.iter_mut().find(|(counted, _)| counted == name) {
                Some((_, n)) => *n += 1,
                None => self.counts.push((name.clone(), 1)),
            }
        }
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (String, u32)> {
        self.counts.iter().map(|(name, n)| (name.to_string(), *n))
    }

    pub(super) fn set_counts<'a>(&mut self, counts: impl IntoIterator<Item = (&'a String, &'a u32)>) {
        self.counts = counts.into_iter().map(|(name, n)| (name.as_str().into(), *n)).collect();
    }
}

/// Something for each of the few calls of a message.
pub(super) struct ByCall<T>(pub(super) Vec<(Arc<str>, T)>);

impl<T> Default for ByCall<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByCall<T> {
    pub(super) fn get(&self, call_id: &str) -> Option<&T> {
        self.0.iter().find(|(id, _)| **id == *call_id).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, call_id: &str) -> Option<&mut T> {
        self.0.iter_mut().find(|(id, _)| **id == *call_id).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, call_id: &str) -> Option<T> {
        let at = self.0.iter().position(|(id, _)| **id == *call_id)?;
        Some(self.0.swap_remove(at).1)
    }

    /// That of the call, or one that is made for it.
    pub(super) fn entry(&mut self, call_id: &Arc<str>) -> &mut T
    where
        T: Default,
    {
        let at = self.0.iter().position(|(id, _)| id == call_id).unwrap_or_else(|| {
            self.0.push((call_id.clone(), T::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}
