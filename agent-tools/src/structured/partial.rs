//! Partial answer during streaming.

use std::{fmt, sync::Arc};

use agent_core::{Chunk, Event, EventKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::form::Form;
use crate::PartialJson;

/// Partial answer during streaming; made by [`Structured::partial`](super::Structured::partial).
///
/// Feed it the events of a run, or the chunks of one model call. Its value is not validated.
#[derive(Clone)]
pub struct PartialAnswer {
    form: Arc<Form>,
    json: PartialJson,
}

impl PartialAnswer {
    pub(super) fn new(form: Arc<Form>) -> Self {
        Self { form, json: PartialJson::new().objects_only() }
    }

    /// Processes an event of a run; returns true if the value may have changed. Events of
    /// sub-agents are ignored.
    pub fn event(&mut self, event: &Event) -> bool {
        match &event.kind {
            _ if event.ids.depth > 0 => false,
            EventKind::Chunk(chunk) => self.chunk(chunk),
            EventKind::StepStarted { .. } => self.restart(),
            // A reader that fell behind gets the complete message.
            EventKind::ModelAnswered { message, .. } if !message.has_calls() => {
                self.restart();
                self.json.push(&message.text());
                true
            }
            _ => false,
        }
    }

    /// Processes a chunk of a model call; returns true if the value may have changed.
    pub fn chunk(&mut self, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::Text { delta, .. } => {
                self.json.push(delta);
                true
            }
            Chunk::Restart => self.restart(),
            _ => false,
        }
    }

    fn restart(&mut self) -> bool {
        self.json = PartialJson::new().objects_only();
        true
    }

    /// Returns the known part of the value; `None` before the answer begins.
    pub fn value(&self) -> Option<&Value> {
        self.json.value().and_then(|value| self.form.within(value))
    }

    /// Deserialises the known part, if it matches the type: one whose fields are all optional.
    pub fn parse<P: DeserializeOwned>(&self) -> Option<P> {
        P::deserialize(self.value()?).ok()
    }
}

impl fmt::Debug for PartialAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialAnswer").field("value", &self.value()).finish()
    }
}
