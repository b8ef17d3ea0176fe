//! What the step under way gave.

use std::{collections::VecDeque, sync::Arc};

use crate::{Begun, ModelResponse, ToolOutput};

/// What the step under way gave before hooks saw it, so that only what they changed is written again.
#[derive(Default)]
pub(super) struct Results {
    pub(super) models: Vec<Given<Arc<ModelResponse>>>,
    pub(super) tools: ByCall<Given<ToolOutput>>,
    /// The calls that were begun, and their tools.
    pub(super) started: ByCall<Arc<str>>,
    /// The tools that were begun and gave nothing yet: were they to be cut off now, nobody would know what they did.
    pub(super) begun: ByCall<Begun>,
    /// Results from before a restart, of calls that were not answered: their tools do not run again.
    pub(super) kept: ByCall<ToolOutput>,
    /// Calls that an attempt before a restart began and left without a result.
    pub(super) in_doubt: ByCall<Begun>,
    /// What the model answered before a restart, if no hook accepted it yet.
    pub(super) answered: VecDeque<Arc<ModelResponse>>,
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

impl Results {
    pub(super) fn clear(&mut self) {
        self.models.clear();
        self.tools.0.clear();
        self.started.0.clear();
        self.begun.0.clear();
        self.kept.0.clear();
        self.in_doubt.0.clear();
        self.answered.clear();
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

    pub(super) fn insert(&mut self, call_id: Arc<str>, value: T) -> Option<T> {
        let earlier = self.remove(&call_id);
        self.0.push((call_id, value));
        earlier
    }
}
