//! Where a run stood after one of its steps.

use std::sync::Arc;

use super::{Entry, EntryBody, Fold, Journal, fold::each_entry};
use crate::{AssistantMessage, Checkpoint, Error, Result, RunIds};

/// Where the newest run of an agent stood in its session after its step `step` (0 is before the first), as a run of its own
/// in the session `into`: with the conversation, the state and the shared storage of that moment. Nothing is written: the new
/// session begins when the run is gone on with, and the old one stays as it is.
///
/// # Errors
/// Those of [`Journal::read`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if the run did not come that far.
pub async fn fork_at(
    journal: &dyn Journal,
    session: &str,
    agent_id: &str,
    step: u32,
    into: impl Into<Arc<str>>,
) -> Result<Checkpoint> {
    let mut newest = None;
    each_entry(journal, session, |entry| {
        if let EntryBody::RunStarted { ids, fingerprint } = &entry.body
            && (ids.parent_run_id.is_none() && *ids.agent_id == *agent_id)
        {
            newest = Some((ids.clone(), fingerprint.clone()));
        }
    })
    .await?;
    let nothing = || Error::config(format!("session '{session}' holds no run of agent '{agent_id}' to fork"));
    let (old, fingerprint) = newest.ok_or_else(nothing)?;

    let mut ids = RunIds::root(old.agent.clone(), into);
    ids.agent_id = old.agent_id.clone();
    let mut cut = Cut { run: old.run_id.clone(), step, at: 0, calls: false, place: Place::Before };
    let (mut fold, mut checkpoint) = (Fold::new(agent_id), Checkpoint::new(ids, fingerprint));
    each_entry(journal, session, |entry| {
        if cut.takes(entry) {
            fold.apply(entry);
            match &entry.body {
                _ if entry.run != cut.run => {}
                EntryBody::StateChanged { state, .. } => checkpoint.state.extend(state.clone()),
                // What holds for the whole run, such as its system prompt, holds for the fork.
                EntryBody::Decided { name, value, beginning: true } => {
                    checkpoint.decisions.push((name.clone(), value.clone()));
                }
                _ => {}
            }
        }
    })
    .await?;
    if cut.at < step {
        let reached = cut.at;
        return Err(Error::config(format!("the run ended after step {reached}: it cannot be forked at step {step}")));
    }
    let view = fold.finish();
    (checkpoint.history, checkpoint.globals) = (view.history, Some(view.globals));
    checkpoint.step = step;
    Ok(checkpoint)
}

/// Which entries belong to what was before the fork.
struct Cut {
    run: Arc<str>,
    step: u32,
    /// The newest step that is complete.
    at: u32,
    /// The newest answer has calls.
    calls: bool,
    place: Place,
}

#[derive(PartialEq)]
enum Place {
    Before,
    /// The step is complete; what it changed may follow.
    Complete,
    After,
}

impl Cut {
    fn takes(&mut self, entry: &Entry) -> bool {
        if entry.run != self.run {
            return self.place == Place::Before;
        }
        match &entry.body {
            EntryBody::ModelFinished { step, .. } | EntryBody::ModelAccepted { step, .. } if *step > self.step => {
                self.place = Place::After;
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
                    self.place = Place::Complete;
                }
            }
            EntryBody::StateChanged { .. } => {}
            _ if self.place == Place::Complete => self.place = Place::After,
            _ => {}
        }
        self.place != Place::After
    }
}
