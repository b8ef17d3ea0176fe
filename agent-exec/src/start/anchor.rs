//! Snapshots in the journal, which let a process that opens a long session read only its tail.

use agent_core::{
    Result,
    journal::{Entry, EntryBody, JournalWriter, SharedIndex},
    run::Clock,
};

use super::RunOptions;

/// Number of entries after which a session gets a new snapshot. Reading this many takes about 10
/// ms.
const ANCHORED_AFTER: u64 = 1_000;

/// Writes a snapshot of the session of `index` if it has grown enough. Called when a run starts or
/// resumes, because the index was just updated.
///
/// # Errors
/// The errors of the journal.
pub(super) async fn anchor(index: &SharedIndex, options: &RunOptions, writer: &dyn JournalWriter) -> Result<()> {
    let Some(anchor) = index.look(|index| index.anchor(ANCHORED_AFTER)) else { return Ok(()) };
    let now = options.resources.get::<Clock>().unwrap_or_default().now();
    let anchored = Entry::new("anchor".into(), now, EntryBody::Anchored { anchor: Box::new(anchor) });
    writer.append(vec![anchored]).await.map(drop)
}
