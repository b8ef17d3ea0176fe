//! Usage, of a run and of the tree below it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::usage::Usage;

/// Adds up usage: what a run used itself, and with all runs below it. Nothing is counted twice.
#[derive(Clone, Default)]
pub struct UsageMeter(Arc<Inner>);

#[derive(Default)]
struct Inner {
    above: Option<UsageMeter>,
    totals: Mutex<Totals>,
}

#[derive(Clone, Copy, Default)]
struct Totals {
    own: Usage,
    tree: Usage,
}

impl UsageMeter {
    /// A meter below `above` that starts at these totals.
    pub fn new(above: Option<Self>, own: Usage, tree: Usage) -> Self {
        Self(Arc::new(Inner { above, totals: Mutex::new(Totals { own, tree }) }))
    }

    /// Adds the usage of one call of the run itself.
    pub fn add(&self, usage: Usage) {
        let mut totals = self.lock();
        totals.own += usage;
        totals.tree += usage;
        drop(totals);
        for above in std::iter::successors(self.0.above.as_ref(), |meter| meter.0.above.as_ref()) {
            above.lock().tree += usage;
        }
    }

    /// What the run used itself.
    pub fn own(&self) -> Usage {
        self.lock().own
    }

    /// What it used with all runs below.
    pub fn tree(&self) -> Usage {
        self.lock().tree
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for UsageMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageMeter").field("own", &self.own()).field("tree", &self.tree()).finish()
    }
}
