//! [`SlidingWindow`].

use agent_core::Result;
use async_trait::async_trait;

use super::Strategy;
use crate::compaction::{Keep, Note, Task, Unit};

/// Keeps the newest part of the conversation and removes older messages. A note states the number
/// of removed messages; it retains the text of an earlier note or summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindow(Keep);

impl SlidingWindow {
    /// Keeps the newest `window_size` iterations: a model response with its results, and the user
    /// messages before it.
    pub fn new(window_size: usize) -> Self {
        Self(Keep::Iterations(window_size))
    }

    /// Keeps the part that this rule selects.
    pub fn keeping(keep: Keep) -> Self {
        Self(keep)
    }
}

#[async_trait]
impl Strategy for SlidingWindow {
    fn name(&self) -> &str {
        "sliding_window"
    }

    async fn compact(&self, task: &Task<'_>, given: Vec<Unit>) -> Result<Vec<Unit>> {
        let mut units = given.clone();
        let mut note = Note::take(task.cx(), &mut units)?;
        let removable = task.removable(self.0, &units);
        if !removable.contains(&true) {
            return Ok(given);
        }
        let gone = units.iter().zip(&removable).filter(|(_, removable)| **removable);
        note.removed = note.removed.saturating_add(gone.map(|(unit, _)| unit.size()).sum());
        let recent = task.recent(self.0, &units);
        task.take_out(&removable, recent, units, &note)
    }
}
