//! Whether a checkpoint of a run is the newest that there is.

use std::sync::Arc;

/// What a session knows of a run at its top.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// Nothing: the run was kept elsewhere, or nowhere.
    Unknown,
    /// It can go on. Its newest attempt has this nonce; none if it did not stop yet.
    Open {
        /// The nonce.
        attempt: Option<Arc<str>>,
    },
    /// It cannot, for this reason.
    Over(&'static str),
}
