//! Resumes a run from a checkpoint.

use std::collections::BTreeMap;

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, Finished, Result, RunEnd,
    journal::JournalWriter,
    run::{Clock, checkpoint::Phase},
};

use super::{
    AgentParts, JournalSync, RunOptions, RunSlot, StartState,
    anchor::anchor,
    answers::{accepted, used_before},
    start_state::Origin,
};

/// Returns the checkpoint of the session's newest run.
pub(super) async fn unfinished(agent: &AgentParts, slot: &RunSlot) -> Result<Checkpoint> {
    let (session, agent_id) = (&slot.ids.session, &slot.ids.agent_id);
    if agent.journal.is_none() {
        return Err(Error::config("there is nothing to recover from: give the agent a store with store(..)"));
    }
    let nothing = || Error::config(format!("session '{session}' holds no unfinished run of agent '{agent_id}'"));
    slot.journal.index(session).await?.look(|index| index.unfinished(agent_id)).ok_or_else(nothing)
}

/// Adapts the checkpoint to this agent and adds the newly given answers.
pub(super) async fn begin(
    agent: &AgentParts,
    options: &RunOptions,
    slot: &RunSlot,
    mut checkpoint: Box<Checkpoint>,
    given: BTreeMap<String, Answer>,
    writer: &dyn JournalWriter,
) -> Result<StartState> {
    fit(agent, options, &mut checkpoint)?;
    checkpoint.fingerprint.clone_from(&agent.fingerprint);
    checkpoint.ids.worker.clone_from(&slot.ids.worker);
    let journal = agent.journal.as_deref().filter(|_| options.is_root());
    // Answers from the parent run were already checked at the root.
    let given = match options.is_root() {
        true => {
            let clock = options.resources.get::<Clock>().unwrap_or_default();
            accepted(&checkpoint, given, clock.now()).map_err(|e| e.with_checkpoint((*checkpoint).clone()))?
        }
        false => given,
    };
    let sync = match journal {
        Some(journal) => {
            let sync = JournalSync::of(journal, &checkpoint, options.allow_rewind).await;
            // A checkpoint without a nonce looks up to date however often it is passed.
            let may_be_old = checkpoint.attempt.is_none() || sync.as_ref().is_err_and(|e| e.kind() == ErrorKind::Stale);
            if may_be_old && let Some(used) = used_before(journal, &checkpoint, &given).await? {
                return Err(used.with_checkpoint(*checkpoint));
            }
            let sync = sync?;
            anchor(&journal.index(&checkpoint.ids.session).await?, options, writer).await?;
            sync
        }
        None => JournalSync::UpToDate,
    };
    // The parent run may still hold answers to questions that were settled earlier.
    let asked = given.into_iter().filter(|(id, _)| checkpoint.questions.iter().any(|question| question.id == *id));
    checkpoint.answers.extend(asked.collect::<Vec<_>>());
    Ok(StartState { checkpoint, messages: Vec::new(), origin: Origin::Checkpoint(sync) })
}

/// Migrates the checkpoint of another agent, or refuses it.
fn fit(agent: &AgentParts, options: &RunOptions, checkpoint: &mut Checkpoint) -> Result<()> {
    if checkpoint.fingerprint == agent.fingerprint {
        return Ok(());
    }
    match &agent.migration {
        Some(migrate) => migrate(checkpoint),
        None if options.allow_changed_agent => Ok(()),
        None => {
            let changes = difference(&checkpoint.fingerprint, &agent.fingerprint);
            Err(Error::config(format!(
                "the checkpoint is of another agent; resume with the agent that made it, give the agent a migration, or say \
                 allow_changed_agent():\n{changes}"
            )))
        }
    }
}

/// Returns the lines in which two fingerprints differ.
pub(crate) fn difference(then: &str, now: &str) -> String {
    let lines = then.lines().zip(now.lines()).filter(|(a, b)| a != b);
    lines.map(|(a, b)| format!("- {a}\n+ {b}")).collect::<Vec<_>>().join("\n")
}

/// Returns the end of a child run that had already ended, for a parent run that did not receive it.
pub(super) fn ended(state: &StartState, options: &RunOptions) -> Option<RunEnd> {
    let checkpoint = Some(&*state.checkpoint).filter(|_| state.is_resumed() && !options.is_root())?;
    let Phase::Ended(exit) = &checkpoint.phase else { return None };
    Some(RunEnd::Finished(Box::new(Finished::of(checkpoint, exit))))
}
