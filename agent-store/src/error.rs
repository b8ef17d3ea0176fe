//! Errors that all stores share.

use agent_core::{Error, ErrorKind, Result};

/// The writer thread has ended and will not answer.
pub(crate) fn thread_ended() -> Error {
    Error::new(ErrorKind::Store, "the journal's thread has ended: open the journal again")
}

/// The lease was lost to another process, which may append now.
pub(crate) fn lost(session: &str, agent: &str) -> Error {
    let message = format!("the lease of agent '{agent}' in session '{session}' was lost to another process");
    Error::new(ErrorKind::Store, message)
}

/// An earlier append failed: later ones would leave a gap.
pub(crate) fn earlier_failed() -> Error {
    Error::new(ErrorKind::Store, "an earlier append to this session failed: open it again")
}

/// Another writer may still append.
pub(crate) fn in_use(session: &str) -> Error {
    Error::new(ErrorKind::Busy, format!("session '{session}' is in use"))
}

/// The limit on waiting bytes is exceeded.
pub(crate) fn cannot_keep_up(bytes: usize) -> Error {
    let message = format!("the journal cannot keep up: {bytes} bytes wait for the disk");
    Error::new(ErrorKind::Store, message).with_retry(agent_core::Retry::Temporary(None))
}

/// Logs that past accounts of a ledger could not be deleted.
pub(crate) fn not_forgotten(forgotten: Result<()>) {
    if let Err(e) = forgotten {
        tracing::warn!(error = %e, "a ledger's past accounts could not be deleted; deletion is retried the next day");
    }
}
