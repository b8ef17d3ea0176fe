//! What the runs of one tree share: the journal, and their states as they stand now.

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

/// The states of the runs of one tree. Every entry is applied when it is recorded, so that a checkpoint is a look at them and
/// a run that was dropped is known as far as it came. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(super) struct Tree(Arc<Shared>);

struct Shared {
    journal: Arc<dyn Journal>,
    outbox: Outbox,
    index: Mutex<SessionIndex>,
    /// When the tree began, by the system's clock and by the one that deadlines count with.
    began: (u64, Instant),
}

impl Tree {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        let began = (system_now(), Instant::now());
        Self(Arc::new(Shared { journal, outbox: Outbox::default(), index: Mutex::default(), began }))
    }

    /// Where the tree's entries are kept.
    pub(super) fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    /// What the tree's runs handed to the journal.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }

    /// Milliseconds since 1970. Entries are at least as far apart as deadlines count, whoever sets the system's clock back
    /// meanwhile; while a machine sleeps, the system's clock alone goes on.
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

    /// True if the newest state of a run is this one.
    pub(super) fn knows(&self, child: &RunState) -> bool {
        self.lock().knows(child)
    }

    /// Where the run stands now, and the child runs that it waits for.
    pub(super) fn at_rest(&self, run: &str) -> Option<RunState> {
        let now = self.now();
        self.look(run, |index, state| {
            let mut rest = index.at_rest(state);
            rest.elapsed_ms += now.saturating_sub(state.trail.last_time);
            rest
        })
    }

    /// Looks at the state of a run that was seeded, unless it has ended and the tree forgot it.
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
