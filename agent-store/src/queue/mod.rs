//! Queues of runs: what all of them decide alike ([`record`]), and the one in memory.

mod limits;
mod memory;
mod news;
pub(crate) mod record;
mod schedule;

pub use self::{limits::QueueLimits, memory::MemoryQueue};
#[cfg(feature = "postgres")]
pub(crate) use self::{
    news::News,
    schedule::{Times, in_words},
};
