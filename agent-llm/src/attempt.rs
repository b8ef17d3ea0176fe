//! What those have in common that call a model more than once, or one of several.

use agent_core::{Error, ErrorKind, ModelInfo, Result, RunCx};

/// Gives `error` back, or an error that says that the run, if there is one, was cancelled after it.
pub(crate) fn unless_cancelled(run: Option<&RunCx>, error: Error) -> Result<Error> {
    if run.is_some_and(|run| run.cancellation().is_cancelled()) { Err(cancelled(error)) } else { Ok(error) }
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

/// The first one's info, with the smallest limits of all.
pub(crate) fn what_holds_for_all(infos: &[ModelInfo]) -> ModelInfo {
    let mut all = infos[0].clone();
    all.context_window = infos.iter().filter_map(|info| info.context_window).min();
    all.max_output = infos.iter().filter_map(|info| info.max_output).min();
    all.tools = infos.iter().all(|info| info.tools);
    all.json_schema = infos.iter().all(|info| info.json_schema);
    all
}
