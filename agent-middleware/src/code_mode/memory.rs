//! How much memory programs may use.
//!
//! The interpreter asks, before it makes a large value and between instructions, how much memory there is in use. An executable that
//! has its allocator answers that. Where there is none, whoever waits for a program tells what the process has.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};

/// What is in use, for all programs of the process.
pub(super) struct Memory {
    live: &'static AtomicUsize,
}

impl Memory {
    /// What the process has, where that can be told and no allocator does.
    pub(super) fn of_process() -> Option<Self> {
        static IS_OURS: OnceLock<bool> = OnceLock::new();
        let take = || {
            let none_armed = BASELINE_MEMORY.load(Ordering::Relaxed) == usize::MAX;
            let ours = none_armed && resident().is_some();
            if ours {
                BASELINE_MEMORY.store(0, Ordering::Relaxed);
            }
            ours
        };
        IS_OURS.get_or_init(take).then_some(Self { live: &LIVE_MEMORY })
    }

    /// Looks again; gives the bytes.
    pub(super) fn look(&self) -> usize {
        let bytes = resident().unwrap_or_default();
        self.live.store(bytes, Ordering::Relaxed);
        bytes
    }
}

/// The bytes of memory that the process has, where the system tells. Where pages are larger than usual, it has more.
fn resident() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let pages: usize = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
