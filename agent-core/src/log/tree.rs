//! The states of the runs of one tree, as they stand now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    history::History,
    journal::{Entry, SessionIndex},
    state::{Phase, RunIds, RunState},
};

/// The states of the runs of one tree. Every entry is applied when it is noted, so that a checkpoint is a look at them and
/// a run that was dropped is known as far as it came. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub(super) struct Tree(Arc<Mutex<SessionIndex>>);

impl Tree {
    pub(super) fn apply(&self, entry: &Entry) {
        self.lock().apply(entry);
    }

    pub(super) fn seed(&self, ids: &RunIds, history: History) {
        self.lock().seed(ids, history);
    }

    pub(super) fn adopt(&self, checkpoint: &RunState) {
        self.lock().adopt(checkpoint);
    }

    pub(super) fn at_rest(&self, run: &str, phase: Phase) -> RunState {
        self.lock().at_rest(run, phase)
    }

    /// Reads the state of a run that was seeded.
    pub(super) fn read<R>(&self, run: &str, read: impl FnOnce(&RunState) -> R) -> R {
        read(self.lock().state(run))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionIndex> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
