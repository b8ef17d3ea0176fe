//! What lets a process that sees a long session for the first time read it from near its end.

use agent_core::{
    Result,
    journal::{Entry, EntryBody, JournalWriter, SharedIndex},
    run::Clock,
};

use super::Terms;

/// The entries of a session after which it is anchored. To read so many takes some ten milliseconds.
const ANCHORED_AFTER: u64 = 1_000;

/// Anchors the session of `index` if it has grown enough: where a run begins or goes on, the index was just brought up to date.
///
/// # Errors
/// Those of the journal.
pub(super) async fn anchor(index: &SharedIndex, terms: &Terms, writer: &dyn JournalWriter) -> Result<()> {
    let Some(anchor) = index.look(|index| index.anchor(ANCHORED_AFTER)) else { return Ok(()) };
    let now = terms.resources.get::<Clock>().unwrap_or_default().now();
    let anchored = Entry::new("anchor".into(), now, EntryBody::Anchored { anchor: Box::new(anchor) });
    writer.append(vec![anchored]).await.map(drop)
}
