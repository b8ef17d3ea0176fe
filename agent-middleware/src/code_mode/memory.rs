//! Memory limit of programs.
//!
//! Before it makes a large value and between instructions, the interpreter reads the amount of
//! memory in use. An executable with the interpreter's allocator updates that number. Otherwise,
//! the thread that waits for a program updates it with the memory of the process.

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY};

/// Memory in use, for all programs of the process.
pub(super) struct Memory {
    live: &'static AtomicUsize,
}

impl Memory {
    /// Returns the tracker of the process's memory, if the platform reports it and no allocator
    /// does.
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

    /// Updates the number; returns the bytes.
    pub(super) fn look(&self) -> usize {
        let bytes = resident().unwrap_or_default();
        self.live.store(bytes, Ordering::Relaxed);
        bytes
    }
}

/// Returns the resident memory of the process in bytes, if the platform reports it. Assumes 4 KiB
/// pages, so that larger pages are underestimated.
fn resident() -> Option<usize> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let pages: usize = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}
