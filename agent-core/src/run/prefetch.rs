//! What a step needs of its run, fetched at once.

use std::{hint::black_box, sync::atomic::Ordering};

use super::RunCx;

impl RunCx {
    /// Looks at the places that every step visits, without locking or waiting: for an executor that is about to go on with
    /// the run.
    ///
    /// Where thousands of runs take turns, none of these places is in a cache. Visited one by one, each is waited for by
    /// itself, since the processor does not look past the lock that is taken there; looked at together, they are waited for
    /// once.
    pub fn prefetch(&self) {
        let run = &*self.0;
        let own = run.history.is_poisoned() | run.entered.load(Ordering::Relaxed);
        let parts = run.log.glance() | run.usage.glance() | run.inbox.glance() | run.pause.is_requested();
        black_box(own | parts | run.emitter.is_observed());
    }
}
