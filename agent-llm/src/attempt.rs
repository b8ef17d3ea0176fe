//! What layers that call a model more than once have in common.

use agent_core::{Error, ErrorKind, ModelInfo, Result, RunCx};

/// Gives `error` back, or an error that says that the run was cancelled after it.
pub(crate) fn unless_cancelled(cx: &RunCx, error: Error) -> Result<Error> {
    if cx.cancellation().is_cancelled() { Err(cancelled(error)) } else { Ok(error) }
}

/// The run was cancelled after a call had failed with `error`.
pub(crate) fn cancelled(error: Error) -> Error {
    Error::new(ErrorKind::Cancelled, "the run was cancelled before the call could be tried again").with_source(error)
}

/// What a model is called in events and errors: its provider, if it has one, and its name.
pub(crate) fn label(info: &ModelInfo) -> String {
    match info.provider.as_str() {
        "" => info.name.clone(),
        provider => format!("{provider}/{}", info.name),
    }
}
