//! Keeping an answer as the model gave it, while the layers outside make of it what they want.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{AssistantMessage, Chunk, ChunkSink, MessageBuilder};

/// What the layers outside made of an answer while it was streamed.
pub(super) struct Tee(Arc<Mutex<Made>>);

#[derive(Default)]
struct Made {
    message: MessageBuilder,
    changed: bool,
}

impl Tee {
    /// A sink that passes chunks on to `sink` but lets them through unchanged; none if `sink` changes nothing anyway.
    pub(super) fn of(sink: &ChunkSink) -> Option<(Self, ChunkSink)> {
        if !sink.transforms() {
            return None;
        }
        let (tee, outer) = (Self(Arc::default()), sink.clone());
        let made = Self(tee.0.clone());
        let inner = ChunkSink::default().with(move |chunk| {
            let passed = outer.push(chunk.clone())?;
            made.note(&chunk, passed);
            Ok(Some(chunk))
        });
        Some((tee, inner))
    }

    fn note(&self, chunk: &Chunk, passed: Option<Chunk>) {
        let mut made = self.made();
        if *chunk == Chunk::Restart {
            *made = Made::default();
            return;
        }
        made.changed |= passed.as_ref() != Some(chunk);
        if let Some(passed) = passed {
            made.message.push(&passed);
        }
    }

    /// What the layers made of `message`, marked as edited if they changed it.
    pub(super) fn apply(&self, message: &mut AssistantMessage) {
        let made = std::mem::take(&mut *self.made());
        if made.changed {
            *message.blocks_mut() = made.message.into_blocks();
        }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
