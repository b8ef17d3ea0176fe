//! Forks a run at one of its steps.

use std::sync::Arc;

use super::{Entry, EntryBody, Journal, SessionIndex, each_entry_while};
use crate::{
    error::{Error, Result},
    message::AssistantMessage,
    state::{Checkpoint, RunIds},
};

/// Returns the checkpoint of a new run, in the session `into`, that continues from where a run of
/// the agent was after step `step` (0 is before the first): with the conversation, the state and
/// the shared storage of that moment, regardless of later entries, and even if the run was undone
/// since. Without `run`, forks the agent's newest run; any run of the session can be named,
/// including those of sub-agents. Writes nothing: the new session begins when the checkpoint is
/// resumed, and the old session is unchanged.
///
/// # Errors
/// Those of [`Journal::read`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no such
/// run or it did not reach that step.
pub async fn fork_at(
    journal: &dyn Journal,
    session: &str,
    agent_id: &str,
    run: Option<&str>,
    step: u32,
    into: impl Into<Arc<str>>,
) -> Result<Checkpoint> {
    let nothing = || match run {
        Some(run) => Error::config(format!("session '{session}' holds no run '{run}' to fork")),
        None => Error::config(format!("session '{session}' holds no run of agent '{agent_id}' to fork")),
    };
    let began = began(journal, session, agent_id, run).await?.ok_or_else(nothing)?;
    let first = journal.read(session, began - 1, 1).await?.pop().filter(|entry| entry.seq == began);
    let Some(EntryBody::RunStarted { ids: old, fingerprint }) = first.map(|entry| entry.body.clone()) else {
        return Err(nothing());
    };

    let mut ids = RunIds::root(old.agent.clone(), into);
    if old.parent_run_id.is_none() {
        ids.agent_id = old.agent_id.clone();
    }
    let mut index = SessionIndex::before(journal, session, began).await?;
    let mut stood = None; // saved before an entry that may remove an ended child run from the index
    let mut cut = Cut { ids: old.clone(), step, at: 0, calls: false, phase: Phase::Within };
    each_entry_while(journal, session, began - 1, |entry| {
        if cut.takes(entry) {
            let may_forget = matches!(entry.body, EntryBody::TurnEnded { .. } | EntryBody::RunStarted { .. });
            if may_forget && entry.run != old.run_id {
                stood = index.state(&old.run_id).cloned().or(stood.take());
            }
            index.apply(entry);
        }
        cut.phase != Phase::After
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
    // Decisions for the whole run, such as its system prompt, hold for the fork.
    checkpoint.decisions = stood.decisions[..stood.beginning].to_vec();
    checkpoint.beginning = stood.beginning;
    checkpoint.history = index.history(&old.agent_id);
    checkpoint.globals = Some(index.globals().clone());
    checkpoint.step = step;
    Ok(checkpoint)
}

/// Returns the sequence number of the selected run's first entry, if there is such a run.
async fn began(journal: &dyn Journal, session: &str, agent_id: &str, run: Option<&str>) -> Result<Option<u64>> {
    let find = |index: &SessionIndex| match run {
        Some(run) => index.run(run).map(|(_, record)| record.seq),
        None => index.runs(agent_id).iter().rfind(|record| record.is_root).map(|record| record.seq),
    };
    let (found, is_whole) = journal.index(session).await?.look(|index| (find(index), index.is_whole()));
    match found {
        None if !is_whole => Ok(journal.whole_index(session).await?.look(find)),
        found => Ok(found),
    }
}

/// Selects the entries since a run's beginning that precede the fork point.
struct Cut {
    /// Ids of the run to fork.
    ids: Arc<RunIds>,
    step: u32,
    /// The newest complete step.
    at: u32,
    /// True if the newest answer has calls.
    calls: bool,
    phase: Phase,
}

#[derive(PartialEq)]
enum Phase {
    /// The step is not complete.
    Within,
    /// The step is complete; its changes may follow.
    Complete,
    After,
}

impl Cut {
    fn takes(&mut self, entry: &Entry) -> bool {
        match &entry.body {
            EntryBody::RunStarted { ids, .. } if ids.run_id == self.ids.run_id => self.phase = Phase::Within,
            // The agent has begun another run, or the entries were undone.
            EntryBody::RunStarted { ids, .. } if ids.agent_id == self.ids.agent_id => self.phase = Phase::After,
            EntryBody::Undone { .. } => self.phase = Phase::After,
            _ if entry.run != self.ids.run_id => return self.phase == Phase::Within,
            EntryBody::ModelFinished { step, .. } | EntryBody::ModelAccepted { step, .. } if *step > self.step => {
                self.phase = Phase::After;
            }
            EntryBody::ModelFinished { response, .. } => self.calls = response.message.has_calls(),
            EntryBody::ModelAccepted { step, message, .. } => {
                self.calls = message.as_ref().map_or(self.calls, AssistantMessage::has_calls);
                // An answer with calls is complete when its turn ends.
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
}
