//! The answer while it is being said.

use std::{fmt, sync::Arc};

use agent_core::{Chunk, Event, EventKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::form::Form;
use crate::PartialJson;

/// The answer as far as it was said; made by [`Structured::partial`](super::Structured::partial).
///
/// It is fed with the events of a run, or with the chunks of one model call. What it holds was not checked.
#[derive(Clone)]
pub struct PartialAnswer {
    form: Arc<Form>,
    json: PartialJson,
}

impl PartialAnswer {
    pub(super) fn new(form: Arc<Form>) -> Self {
        Self { form, json: PartialJson::new().objects_only() }
    }

    /// Takes an event of a run; true if the value may be another now. Runs below the root's are passed over.
    pub fn event(&mut self, event: &Event) -> bool {
        match &event.kind {
            _ if event.ids.depth > 0 => false,
            EventKind::Chunk(chunk) => self.chunk(chunk),
            EventKind::StepStarted { .. } => self.restart(),
            // A reader that fell behind gets the whole in place of what it missed.
            EventKind::ModelAnswered { message, .. } if !message.has_calls() => {
                self.restart();
                self.json.push(&message.text());
                true
            }
            _ => false,
        }
    }

    /// Takes a chunk of a model call; true if the value may be another now.
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

    /// What is known so far; `None` before the answer begins.
    pub fn value(&self) -> Option<&Value> {
        self.json.value().and_then(|value| self.form.within(value))
    }

    /// What is known so far as a type, if it fits: one whose fields may all be missing.
    pub fn parse<P: DeserializeOwned>(&self) -> Option<P> {
        P::deserialize(self.value()?).ok()
    }
}

impl fmt::Debug for PartialAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialAnswer").field("value", &self.value()).finish()
    }
}
