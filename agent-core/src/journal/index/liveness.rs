//! Whether a checkpoint of a run is the newest that there is.

use std::sync::Arc;

use super::Journal;
use crate::{error::Result, state::RunIds};

/// What a session knows of a run at its top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// Nothing: the run was kept elsewhere, or nowhere.
    #[default]
    Unknown,
    /// It can go on. Its newest attempt has this nonce; none if it did not stop yet.
    Open {
        /// The nonce.
        attempt: Option<Arc<str>>,
    },
    /// It cannot, for this reason.
    Over(&'static str),
}

/// What the journal knows of the run `ids` at its top, however long ago that was. Ask while you hold the session's writer if
/// you mean to go on.
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
