//! Suppresses chunks of messages that began before the reader subscribed.

use std::{collections::HashSet, sync::Arc};

use super::{Event, EventKind};
use crate::llm::Chunk;

/// Filter for chunks of messages whose beginning the reader missed.
#[derive(Default)]
pub(super) struct ChunkFilter {
    /// `None` if nothing was missed; otherwise the runs that have begun another message since.
    whole: Option<HashSet<Arc<str>>>,
}

impl ChunkFilter {
    pub(super) fn everybody() -> Self {
        Self { whole: Some(HashSet::new()) }
    }

    /// True if all chunks are suppressed until a message begins.
    pub(super) fn is_everybody(&self) -> bool {
        self.whole.as_ref().is_some_and(HashSet::is_empty)
    }

    /// Records that a run's next chunk is the first of a message.
    pub(super) fn begins(&mut self, run: &Arc<str>) {
        if let Some(whole) = &mut self.whole {
            whole.insert(run.clone());
        }
    }

    pub(super) fn lets_through(&mut self, event: &Event) -> bool {
        let run = &event.ids.run_id;
        match &event.kind {
            EventKind::StepStarted { .. } | EventKind::Chunk(Chunk::Restart) => self.begins(run),
            EventKind::Chunk(_) => return self.whole.as_ref().is_none_or(|whole| whole.contains(run)),
            _ => {}
        }
        true
    }
}
