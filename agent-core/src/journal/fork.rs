//! Where a run stood after one of its steps.

use std::sync::Arc;

use super::{Entry, EntryBody, Journal, SessionIndex, each_entry};
use crate::{
    error::{Error, Result},
    message::AssistantMessage,
    state::{Checkpoint, RunIds},
};

/// Where a run of an agent stood in its session after its step `step` (0 is before the first), as a run of its own in the
/// session `into`: with the conversation, the state and the shared storage of that moment, whatever came after it, and
/// whether it was undone since. Without a `run` it is the agent's newest; any run of the session can be named, those of
/// sub-agents too. Nothing is written: the new session begins when the run is gone on with, and the old one stays as it is.
///
/// # Errors
/// Those of [`Journal::read`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no such run or it did not come
/// that far.
pub async fn fork_at(
    journal: &dyn Journal,
    session: &str,
    agent_id: &str,
    run: Option<&str>,
    step: u32,
    into: impl Into<Arc<str>>,
) -> Result<Checkpoint> {
    let mut found = None;
    each_entry(journal, session, 0, |entry| {
        if let EntryBody::RunStarted { ids, fingerprint } = &entry.body
            && run.map_or(ids.parent_run_id.is_none() && *ids.agent_id == *agent_id, |run| *ids.run_id == *run)
        {
            found = Some((ids.clone(), fingerprint.clone()));
        }
    })
    .await?;
    let nothing = || match run {
        Some(run) => Error::config(format!("session '{session}' holds no run '{run}' to fork")),
        None => Error::config(format!("session '{session}' holds no run of agent '{agent_id}' to fork")),
    };
    let (old, fingerprint) = found.ok_or_else(nothing)?;

    let mut ids = RunIds::root(old.agent.clone(), into);
    if old.parent_run_id.is_none() {
        ids.agent_id = old.agent_id.clone();
    }
    let mut index = SessionIndex::default();
    let mut stood = None; // kept before an entry that may have a run below forgotten that has ended
    let mut cut = Cut { ids: old.clone(), step, at: 0, calls: false, phase: Phase::Before };
    each_entry(journal, session, 0, |entry| {
        if cut.takes(entry) {
            let may_forget = matches!(entry.body, EntryBody::TurnEnded { .. } | EntryBody::RunStarted { .. });
            if may_forget && entry.run != old.run_id {
                stood = index.state(&old.run_id).cloned().or(stood.take());
            }
            index.apply(entry);
        }
    })
    .await?;
    let stood = index.state(&old.run_id).cloned().or(stood);
    if cut.at < step {
        let reached = cut.at;
        return Err(Error::config(format!("the run ended after step {reached}: it cannot be forked at step {step}")));
    }
    let stood = stood.ok_or_else(nothing)?;
    let mut checkpoint = Checkpoint::new(ids, fingerprint);
    checkpoint.state = stood.state;
    // What holds for the whole run, such as its system prompt, holds for the fork.
    checkpoint.decisions = stood.decisions[..stood.beginning].to_vec();
    checkpoint.beginning = stood.beginning;
    checkpoint.history = index.history(&old.agent_id);
    checkpoint.globals = Some(index.globals().clone());
    checkpoint.step = step;
    Ok(checkpoint)
}

/// Which entries belong to what was before the fork.
struct Cut {
    /// The run that is forked.
    ids: Arc<RunIds>,
    step: u32,
    /// The newest step that is complete.
    at: u32,
    /// The newest answer has calls.
    calls: bool,
    phase: Phase,
}

#[derive(PartialEq)]
enum Phase {
    Before,
    /// The run has begun, and its step is not complete.
    Within,
    /// The step is complete; what it changed may follow.
    Complete,
    After,
}

impl Cut {
    fn takes(&mut self, entry: &Entry) -> bool {
        match &entry.body {
            EntryBody::RunStarted { ids, .. } if ids.run_id == self.ids.run_id => self.phase = Phase::Within,
            // The agent did something else since, or somebody thought better of it.
            EntryBody::RunStarted { ids, .. } if ids.agent_id == self.ids.agent_id => self.end(),
            EntryBody::Undone { .. } => self.end(),
            _ if entry.run != self.ids.run_id => return matches!(self.phase, Phase::Before | Phase::Within),
            EntryBody::ModelFinished { step, .. } | EntryBody::ModelAccepted { step, .. } if *step > self.step => {
                self.phase = Phase::After;
            }
            EntryBody::ModelFinished { response, .. } => self.calls = response.message.has_calls(),
            EntryBody::ModelAccepted { step, message, .. } => {
                self.calls = message.as_ref().map_or(self.calls, AssistantMessage::has_calls);
                // An answer with calls is complete when its turn is.
                self.at = if self.calls { self.at } else { *step };
            }
            EntryBody::TurnEnded { step, .. } => {
                self.at = *step;
                if *step == self.step && *step > 0 {
                    self.phase = Phase::Complete;
                }
            }
            EntryBody::StateChanged { .. } => {}
            _ if self.phase == Phase::Complete => self.phase = Phase::After,
            _ => {}
        }
        self.phase != Phase::After
    }

    /// What follows comes after the run, if that has begun.
    fn end(&mut self) {
        if self.phase != Phase::Before {
            self.phase = Phase::After;
        }
    }
}
