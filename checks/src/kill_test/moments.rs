//! Kill points of a process.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nix::sys::signal::{Signal, raise};

/// Counts the kill points that a process passes, and kills it with SIGKILL at the chosen one.
#[derive(Clone, Debug)]
pub(crate) struct Moments(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    passed: AtomicU64,
    dies_at: Option<u64>,
}

impl Moments {
    pub(crate) fn new(dies_at: Option<u64>) -> Self {
        Self(Arc::new(Inner { passed: AtomicU64::new(0), dies_at }))
    }

    /// Passes a kill point. At the chosen one the process dies immediately: no destructor runs and
    /// nothing is flushed.
    pub(crate) fn pass(&self) {
        let now = self.0.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if self.0.dies_at == Some(now) {
            // Does not return; if the signal failed, the parent would see a process that was not
            // killed.
            let _ = raise(Signal::SIGKILL);
        }
    }

    pub(crate) fn passed(&self) -> u64 {
        self.0.passed.load(Ordering::SeqCst)
    }
}
