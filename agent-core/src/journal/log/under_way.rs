//! What the step under way did.

use std::{
    collections::VecDeque,
    ops::{Index, IndexMut},
    sync::Arc,
};

use serde_json::Value;

use crate::{AssistantMessage, Begun, Effect, EntryBody, ModelResponse, ToolOutput};

/// What is known of the step under way, and what was counted and decided before it. In one place, since a step looks at all
/// of it.
#[derive(Default)]
pub(super) struct UnderWay {
    /// What the model gave before hooks saw it, so that only what they changed is written again.
    pub(super) models: OfStep<ModelCall>,
    /// The calls of the model's message, as they are begun.
    pub(super) calls: OfStep<ToolCall>,
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

/// An answer of the model.
pub(super) struct ModelCall {
    pub(super) response: Arc<ModelResponse>,
    /// The step that notes it. None if it came before a restart: those who only hear what is written after that are told it
    /// whole.
    pub(super) step: Option<u32>,
}

impl ModelCall {
    /// True if nothing new is to be written of `message`.
    pub(super) fn told(&self, message: &AssistantMessage) -> bool {
        self.step.is_some() && self.response.message.ptr_eq(message)
    }

    pub(super) fn finished(&self) -> EntryBody {
        let step = self.step.expect("an answer that is noted came in this attempt");
        EntryBody::ModelFinished { step, response: self.response.clone() }
    }
}

/// A call whose tool is run.
#[derive(Clone)]
pub(super) struct ToolCall {
    pub(super) id: Arc<str>,
    pub(super) tool: Arc<str>,
    /// How it was begun, while it gave nothing: were it to be cut off now, nobody would know what it did.
    pub(super) begun: Option<Effect>,
    /// What the tool gave before hooks saw it.
    pub(super) given: Option<ToolOutput>,
    /// True if that is noted: it is not if it came before a restart.
    pub(super) is_told: bool,
}

impl ToolCall {
    fn new(id: Arc<str>, tool: Arc<str>) -> Self {
        Self { id, tool, begun: None, given: None, is_told: false }
    }

    /// True if nothing new is to be written of the answer `output`.
    pub(super) fn told(&self, output: &ToolOutput) -> bool {
        self.is_told && self.given.as_ref().is_some_and(|given| given.ptr_eq(output))
    }

    pub(super) fn started(&self, effect: Effect, attempt: Arc<str>) -> EntryBody {
        EntryBody::ToolStarted { call_id: self.id.clone(), name: self.tool.clone(), effect, attempt }
    }

    pub(super) fn finished(&self) -> EntryBody {
        let output = self.given.clone().expect("a tool that has run gave something");
        EntryBody::ToolFinished { call_id: self.id.clone(), output }
    }

    pub(super) fn answered(&self) -> EntryBody {
        EntryBody::ToolAnswered { call_id: self.id.clone(), name: self.tool.clone(), output: None }
    }
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

impl UnderWay {
    /// Forgets the step, or its model call, which is now complete.
    pub(super) fn end_step(&mut self) {
        self.models.end();
        self.calls.end();
        self.kept.0.clear();
        self.in_doubt.0.clear();
        self.answered.clear();
        self.decisions.made.clear();
        self.decisions.kept.clear();
    }

    /// A call's tool is to be run. Gives its result from before a restart, if there is one.
    pub(super) fn begin_call(&mut self, call_id: &Arc<str>, name: &Arc<str>) -> (Place, Option<ToolOutput>) {
        let place = self.count(call_id, name);
        let output = self.kept.remove(call_id);
        if output.is_some() {
            let call = &mut self.calls[place];
            (call.given, call.is_told) = (output.clone(), false);
        }
        (place, output)
    }

    /// A call's tool is run; it counts if it is its first try.
    pub(super) fn count(&mut self, call_id: &Arc<str>, name: &Arc<str>) -> Place {
        let Some(place) = self.call(call_id) else {
            match self.counts.iter_mut().find(|(counted, _)| counted == name) {
                Some((_, n)) => *n += 1,
                None => self.counts.push((name.clone(), 1)),
            }
            return self.calls.push(ToolCall::new(call_id.clone(), name.clone()));
        };
        if self.calls[place].tool == *name {
            return place;
        }
        self.calls.push(ToolCall { tool: name.clone(), ..self.calls[place].clone() })
    }

    /// A call's tool gave this. What was noted of an earlier try stays as it is.
    pub(super) fn finish_call(&mut self, mut place: Place, output: ToolOutput) -> Place {
        if self.calls[place].is_told {
            place = self.calls.push(self.calls[place].clone());
        }
        let call = &mut self.calls[place];
        (call.begun, call.given, call.is_told) = (None, Some(output), true);
        place
    }

    /// The tool as which a call of this step counts.
    pub(super) fn counted(&self, call_id: &str) -> Option<&Arc<str>> {
        self.calls.iter().find(|call| *call.id == *call_id).map(|call| &call.tool)
    }

    /// The newest that is known of a call.
    pub(super) fn call(&self, call_id: &str) -> Option<Place> {
        self.calls.newest(|call| *call.id == *call_id)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (String, u32)> {
        self.counts.iter().map(|(name, n)| (name.to_string(), *n))
    }

    pub(super) fn set_counts<'a>(&mut self, counts: impl IntoIterator<Item = (&'a String, &'a u32)>) {
        self.counts = counts.into_iter().map(|(name, n)| (name.as_str().into(), *n)).collect();
    }
}

/// Things of the step under way, and before them those of earlier steps that notes speak of.
pub(super) struct OfStep<T> {
    all: Vec<T>,
    /// How many are of earlier steps.
    earlier: usize,
}

/// Where a thing is, in four bytes.
#[derive(Clone, Copy)]
pub(super) struct Place(u32);

impl<T> OfStep<T> {
    pub(super) fn push(&mut self, thing: T) -> Place {
        let place = Place(u32::try_from(self.all.len()).expect("memory is full before"));
        self.all.push(thing);
        place
    }

    /// Those of the step under way.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.all[self.earlier..].iter()
    }

    fn newest(&self, is_it: impl FnMut(&T) -> bool) -> Option<Place> {
        let at = self.earlier + self.iter().rposition(is_it)?;
        u32::try_from(at).ok().map(Place)
    }

    /// The step is complete.
    pub(super) fn end(&mut self) {
        self.earlier = self.all.len();
    }

    /// Forgets those of earlier steps, of which no note speaks any more. What is left has another place.
    pub(super) fn forget_earlier(&mut self) {
        self.all.drain(..self.earlier);
        self.earlier = 0;
    }
}

impl<T> Default for OfStep<T> {
    fn default() -> Self {
        Self { all: Vec::new(), earlier: 0 }
    }
}

impl<T> Index<Place> for OfStep<T> {
    type Output = T;

    fn index(&self, place: Place) -> &T {
        &self.all[place.0 as usize]
    }
}

impl<T> IndexMut<Place> for OfStep<T> {
    fn index_mut(&mut self, place: Place) -> &mut T {
        &mut self.all[place.0 as usize]
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

    pub(super) fn remove(&mut self, call_id: &str) -> Option<T> {
        let at = self.0.iter().position(|(id, _)| **id == *call_id)?;
        Some(self.0.swap_remove(at).1)
    }
}
