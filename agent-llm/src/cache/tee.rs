//! Keeping an answer as the model gave it, while the layers outside make of it what they want.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{AssistantMessage, ChunkSink, model::Collector};

/// What the layers outside make of an answer while it is streamed.
pub(super) struct Tee(Arc<Mutex<Option<Collector>>>);

impl Tee {
    /// A sink that passes chunks on to `sink` but lets them through unchanged; none if `sink` changes nothing anyway.
    pub(super) fn of(sink: &ChunkSink) -> Option<(Self, ChunkSink)> {
        if !sink.transforms() {
            return None;
        }
        let made = Arc::new(Mutex::new(Some(Collector::new(sink))));
        let tee = Self(made.clone());
        let inner = ChunkSink::default().with(move |chunk| {
            if let Some(made) = &mut *made.lock().unwrap_or_else(PoisonError::into_inner) {
                made.push(chunk.clone())?;
            }
            Ok(Some(chunk))
        });
        Some((tee, inner))
    }

    /// What the layers made of `message`, marked as edited if they changed it.
    pub(super) fn apply(&self, message: &mut AssistantMessage) {
        if let Some(made) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            *message = made.finish(message.clone());
        }
    }
}
