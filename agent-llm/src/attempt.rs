//! Helpers shared by retry, failover, hedging and routing.

use agent_core::{Error, ErrorKind, ModelInfo, Result, RunCx};

/// Returns `Ok(error)`, or fails with a `Cancelled` error whose source is `error` if the run, if
/// any, was cancelled.
pub(crate) fn unless_cancelled(run: Option<&RunCx>, error: Error) -> Result<Error> {
    if run.is_some_and(|run| run.cancellation().is_cancelled()) { Err(cancelled(error)) } else { Ok(error) }
}

/// Builds the error of a run that was cancelled after a call had failed with `error`.
pub(crate) fn cancelled(error: Error) -> Error {
    Error::new(ErrorKind::Cancelled, "the run was cancelled before the call could be tried again").with_source(error)
}

/// Returns the model's label in events and errors: `provider/name`, or the name alone.
pub(crate) fn label(info: &ModelInfo) -> String {
    match info.provider.as_str() {
        "" => info.name.clone(),
        provider => format!("{provider}/{}", info.name),
    }
}

/// Combines several models' infos: the first one's name, with the smallest limits of all.
pub(crate) fn what_holds_for_all(infos: &[ModelInfo]) -> ModelInfo {
    let mut all = infos[0].clone();
    all.context_window = infos.iter().filter_map(|info| info.context_window).min();
    all.max_output = infos.iter().filter_map(|info| info.max_output).min();
    all.reserved_output = infos.iter().filter_map(|info| info.reserved_output).max();
    all.tools = infos.iter().all(|info| info.tools);
    all.json_schema = infos.iter().all(|info| info.json_schema);
    all
}
