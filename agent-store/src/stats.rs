//! Write statistics of a journal.

use std::sync::atomic::{AtomicU64, Ordering};

/// Write statistics of a journal since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions: each costs one wait for the disk.
    pub commits: u64,
    /// Appends and other changes within the transactions.
    pub jobs: u64,
    /// Number of times that an [`Async`](crate::Durability::Async) journal waited for the disk: at
    /// the end of a run, and one second after the previous wait. Always 0 for PostgreSQL, whose
    /// server flushes on its own.
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

    /// Counts one wait for the disk.
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
