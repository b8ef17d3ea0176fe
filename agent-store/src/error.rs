//! Failures that all stores have.

use agent_core::{Error, ErrorKind, Result};

/// Nobody will answer: the thread that writes has ended.
pub(crate) fn thread_ended() -> Error {
    Error::new(ErrorKind::Store, "the journal's thread has ended: open the journal again")
}

/// Somebody else may append now.
pub(crate) fn lost(session: &str, agent: &str) -> Error {
    let message = format!("the lease of agent '{agent}' in session '{session}' was lost to another process");
    Error::new(ErrorKind::Store, message)
}

/// What came after a hole would be worth nothing.
pub(crate) fn earlier_failed() -> Error {
    Error::new(ErrorKind::Store, "an earlier append to this session failed: open it again")
}

/// Somebody may still append.
pub(crate) fn in_use(session: &str) -> Error {
    Error::new(ErrorKind::Busy, format!("session '{session}' is in use"))
}

/// More waits than may.
pub(crate) fn cannot_keep_up(bytes: usize) -> Error {
    let message = format!("the journal cannot keep up: {bytes} bytes wait for the disk");
    Error::new(ErrorKind::Store, message).with_retry(agent_core::Retry::Temporary(None))
}

/// Says that past accounts of a ledger are still there.
pub(crate) fn not_forgotten(forgotten: Result<()>) {
    if let Err(e) = forgotten {
        tracing::warn!(error = %e, "a ledger's past accounts could not be deleted; the next day asks again");
    }
}
