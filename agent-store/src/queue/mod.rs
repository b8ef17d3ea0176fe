//! Job queues: the transitions shared by all implementations ([`record`]), and the in-memory queue.

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
