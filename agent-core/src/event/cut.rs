//! What a reader that was not there is not told of.

use std::{collections::HashSet, sync::Arc};

use super::{Event, EventKind};
use crate::llm::Chunk;

/// Whose chunks are left out, because the message that they belong to began while the reader was not there.
#[derive(Default)]
pub(super) struct Cut {
    /// None if nothing was missed; else the runs that have begun another message since.
    whole: Option<HashSet<Arc<str>>>,
}

impl Cut {
    pub(super) fn everybody() -> Self {
        Self { whole: Some(HashSet::new()) }
    }

    /// True if no chunk is let through before a message begins.
    pub(super) fn is_everybody(&self) -> bool {
        self.whole.as_ref().is_some_and(HashSet::is_empty)
    }

    /// A run's next chunk is the first of a message.
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
