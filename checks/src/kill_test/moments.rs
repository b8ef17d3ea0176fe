//! The moments of a process at which it can be told to die.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nix::sys::signal::{Signal, raise};

/// Counts the moments that a process passes, and kills it with SIGKILL at the chosen one.
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

    /// A moment. Nothing comes after the chosen one: no destructor runs and nothing is flushed.
    pub(crate) fn pass(&self) {
        let now = self.0.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if self.0.dies_at == Some(now) {
            // Nobody survives it; were it refused, the parent would see a process that was not killed.
            let _ = raise(Signal::SIGKILL);
        }
    }

    pub(crate) fn passed(&self) -> u64 {
        self.0.passed.load(Ordering::SeqCst)
    }
}
