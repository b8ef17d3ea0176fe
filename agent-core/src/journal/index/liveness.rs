//! Liveness of runs: a checkpoint is live if it is the run's newest.

use std::sync::Arc;

use super::Journal;
use crate::{error::Result, state::RunIds};

/// Liveness of a root run according to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// Unknown: the run was persisted elsewhere, or nowhere.
    #[default]
    Unknown,
    /// Resumable. `attempt` is the nonce of the newest attempt, or `None` if it has not stopped
    /// yet.
    Open {
        /// Nonce of the newest attempt.
        attempt: Option<Arc<str>>,
    },
    /// Not resumable, for this reason.
    Over(&'static str),
}

/// Returns the liveness of the root run `ids` according to the journal, regardless of its age. A
/// caller that wants to resume the run must hold the session's writer.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn liveness_of(journal: &(impl Journal + ?Sized), ids: &RunIds) -> Result<Liveness> {
    let index = journal.index(&ids.session).await?;
    let (known, is_whole) = index.look(|index| (index.liveness(ids), index.is_whole()));
    match known {
        Liveness::Unknown if !is_whole && journal.has_run(&ids.session, &ids.run_id).await? => {
            Ok(journal.whole_index(&ids.session).await?.look(|index| index.liveness(ids)))
        }
        known => Ok(known),
    }
}
