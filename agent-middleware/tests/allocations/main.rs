//! Allocation counts, in a process of their own: the allocator counts for the whole process.

use std::{
    alloc::System,
    sync::{Mutex, MutexGuard, PoisonError},
};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[cfg(feature = "telemetry")]
mod built_ins;
#[path = "../suite/common/mod.rs"]
mod common;
mod compaction;
#[path = "../suite/compaction/world.rs"]
#[allow(dead_code, reason = "the suite of compaction uses the rest")]
mod world;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Serialises the tests: one test at a time counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Waits until no other test counts.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
