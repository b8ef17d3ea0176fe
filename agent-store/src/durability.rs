//! When an append is acknowledged.

/// When an append is acknowledged.
///
/// It is the journal's setting, and so that of all agents with this journal; agents that want another have a journal of
/// their own. The third choice is a [`MemoryJournal`](agent_core::MemoryJournal), or no store at all: nothing is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When it is on disk: it survives a killed process and a power failure.
    #[default]
    Sync,
    /// When the operating system, or the database's server, has it: it survives a killed process. A power failure may take
    /// about the last second with it, never anything in the middle, and never the end of a run: that is on disk when it is
    /// acknowledged, with all that came before. Many times faster where commits are rare, hardly faster where many runs
    /// share them.
    Async,
}
