//! Replays a run from its journal.

use std::sync::Arc;

use agent_core::{
    Checkpoint, Error, ErrorKind, Journal, Result, RunEnd,
    journal::{JournalWriter, Recording, diff},
};

use super::{AgentParts, RunSlot, StartState, start_state::Origin};

/// Loads the requested (or newest) recording, and primes a scratch journal with the session's
/// earlier entries.
pub(super) async fn begin(
    agent: &AgentParts,
    run: Option<&str>,
    slot: &RunSlot,
    writer: &dyn JournalWriter,
) -> Result<StartState> {
    let nothing = || Error::config("there is nothing to replay: give the agent a store with store(..)");
    let journal = agent.journal.as_deref().ok_or_else(nothing)?;
    let recording = match run {
        Some(run) => Recording::of_run(journal, &slot.ids.session, run).await?,
        None => Recording::read(journal, &slot.ids.session, &slot.ids.agent_id).await?,
    };
    let (began, ids) = (recording.beginning(), recording.ids().clone());
    writer.append(began.past).await?;
    let mut checkpoint = Box::new(Checkpoint::new((*ids).clone(), agent.fingerprint.as_str()));
    (checkpoint.history, checkpoint.step, checkpoint.state) = (began.history, began.step, began.state);
    (checkpoint.globals, checkpoint.answers) = (Some(began.before.globals), began.answers);
    Ok(StartState { checkpoint, messages: began.messages, origin: Origin::Recording(Arc::new(recording)) })
}

/// Returns the replay's end if it matches the recording.
pub(super) async fn compare(recording: &Recording, journal: &dyn Journal, end: Result<RunEnd>) -> Result<RunEnd> {
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
