//! Durability of appends.

/// Point at which an append is acknowledged.
///
/// The setting belongs to the journal and so applies to all agents that use it; agents with other
/// needs use a journal of their own. To persist nothing, use a
/// [`MemoryJournal`](agent_core::MemoryJournal) or no store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Acknowledged when the entries are on disk: they survive a killed process and a power
    /// failure.
    #[default]
    Sync,
    /// Acknowledged when the operating system or the database server has the entries: they survive
    /// a killed process. A power failure may lose about the last second, never entries in the
    /// middle, and never the end of a run, which is acknowledged when it and all earlier entries
    /// are on disk. Many times faster where commits are rare, hardly faster where many runs share
    /// them.
    Async,
}
