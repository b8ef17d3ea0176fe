//! Captures the model's original answer, while outer layers may edit the streamed chunks.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{AssistantMessage, ChunkSink, model::Collector};

/// Collects the outer layers' edits of a streamed answer.
pub(super) struct Tee(Arc<Mutex<Option<Collector>>>);

impl Tee {
    /// Returns a sink that passes chunks to `sink` but returns them unchanged; `None` if `sink`
    /// never changes chunks.
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

    /// Applies the layers' edits to `message`, and marks it as edited if they changed it.
    pub(super) fn apply(&self, message: &mut AssistantMessage) {
        if let Some(made) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            *message = made.finish(message.clone());
        }
    }
}
