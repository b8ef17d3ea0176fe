//! Data shared by the runs of one tree: the journal, and the current state of every run.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

use super::outbox::Outbox;
use crate::{
    history::History,
    journal::{Entry, Journal, SessionIndex},
    state::{RunIds, RunState},
};

/// States of the runs of one tree. Every entry is applied when it is recorded, so that a checkpoint
/// is a read of this index, and the progress of a dropped run is known. Cheap to clone; all clones
/// share the same data.
#[derive(Clone)]
pub(super) struct Tree(Arc<Shared>);

struct Shared {
    journal: Arc<dyn Journal>,
    outbox: Outbox,
    index: Mutex<SessionIndex>,
    /// Start of the tree, in system time (milliseconds since 1970) and on the monotonic clock that
    /// deadlines use.
    began: (u64, Instant),
}

impl Tree {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        let began = (system_now(), Instant::now());
        let index = Mutex::new(SessionIndex::live());
        Self(Arc::new(Shared { journal, outbox: Outbox::default(), index, began }))
    }

    /// The journal that stores the tree's entries.
    pub(super) fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    /// The queue of appended, unacknowledged batches of the tree.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }

    /// Milliseconds since 1970, monotonic within the tree even if the system clock is set back.
    /// While a machine sleeps, only the system clock advances.
    pub(super) fn now(&self) -> u64 {
        let (at, began) = self.0.began;
        at.saturating_add(millis(began.elapsed().as_millis())).max(system_now())
    }

    pub(super) fn apply(&self, entry: &Entry) {
        self.lock().apply(entry);
    }

    pub(super) fn seed(&self, ids: &RunIds, history: History) {
        self.lock().seed(ids, history);
    }

    pub(super) fn adopt(&self, checkpoint: &RunState) {
        self.lock().adopt(checkpoint);
    }

    /// True if this is the newest state of the run.
    pub(super) fn knows(&self, child: &RunState) -> bool {
        self.lock().knows(child)
    }

    /// Returns the run's checkpoint, including the child runs that it waits for.
    pub(super) fn at_rest(&self, run: &str) -> Option<RunState> {
        let now = self.now();
        self.look(run, |index, state| {
            let mut rest = index.at_rest(state);
            rest.elapsed_ms += now.saturating_sub(state.run_meta.last_time);
            rest
        })
    }

    /// Calls `look` with the state of a run that was seeded; `None` if the run has ended and the
    /// tree forgot it.
    pub(super) fn look<R>(&self, run: &str, look: impl FnOnce(&SessionIndex, &RunState) -> R) -> Option<R> {
        let index = self.lock();
        index.state(run).map(|state| look(&index, state))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionIndex> {
        self.0.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system_now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis())
}

fn millis(time: u128) -> u64 {
    u64::try_from(time).unwrap_or(u64::MAX)
}
