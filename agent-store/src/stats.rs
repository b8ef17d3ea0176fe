//! What a journal has written.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a journal has written since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions: each costs one wait for the disk.
    pub commits: u64,
    /// Appends and other changes in them.
    pub jobs: u64,
    /// How often a journal that is [`Async`](crate::Durability::Async) waited for the disk all the same: at the end of a
    /// run, and when the last time was a second ago. Always 0 for a server, which does so by itself.
    pub syncs: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    jobs: AtomicU64,
    syncs: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self, jobs: usize) {
        self.commits.fetch_add(1, Ordering::AcqRel);
        self.jobs.fetch_add(jobs as u64, Ordering::AcqRel);
    }

    /// A journal waited for the disk.
    #[cfg(feature = "sqlite")]
    pub(crate) fn synced(&self) {
        self.syncs.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Ordering::Acquire),
            jobs: self.jobs.load(Ordering::Acquire),
            syncs: self.syncs.load(Ordering::Acquire),
        }
    }
}
