//! A run that is driven again from its journal.

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Journal, Result, RunEnd, RunIds, RunRequest,
    journal::{JournalWriter, Recording, diff},
};

use crate::{agent::Inner, start::Beginning};

/// The run that is asked for, or the newest of the session; its ids are the replay's.
pub(crate) async fn recording(agent: &Inner, run: Option<&str>, ids: &mut Arc<RunIds>) -> Result<Recording> {
    let nothing = || Error::config("there is nothing to replay: give the agent a store with store(..)");
    let journal = agent.journal.as_deref().ok_or_else(nothing)?;
    let recording = match run {
        Some(run) => Recording::of_run(journal, &ids.session, run).await?,
        None => Recording::read(journal, &ids.session, &ids.agent_id).await?,
    };
    *ids = recording.ids().clone();
    Ok(recording)
}

/// Where the run began, over a journal that holds what its session held then.
pub(crate) async fn begin(
    recording: &Recording,
    writer: &dyn JournalWriter,
    request: &mut RunRequest,
) -> Result<Beginning> {
    let began = recording.beginning();
    writer.append(began.past).await?;
    request.state = began.state;
    Ok(Beginning {
        messages: began.messages,
        history: began.history,
        globals: began.before.globals,
        step: began.step,
        answers: began.answers,
        ..Beginning::default()
    })
}

/// The replay's end, if it went as the recording did.
pub(crate) async fn compare(recording: &Recording, journal: &dyn Journal, end: Result<RunEnd>) -> Result<RunEnd> {
    if end.as_ref().is_err_and(|e| e.kind() == ErrorKind::NonDeterminism) {
        return end;
    }
    let ids = recording.ids();
    let replayed = Recording::of_run(journal, &ids.session, &ids.run_id).await?;
    match diff(recording, &replayed) {
        Some(parts) => {
            let message = format!("the replay took another path (- recorded, + replayed): {parts}");
            Err(Error::new(ErrorKind::NonDeterminism, message).with_context("step", parts.step.to_string()))
        }
        None => end,
    }
}
