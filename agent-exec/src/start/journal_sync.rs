//! A run that its session's journal does not know as its checkpoint tells it.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Checkpoint, Error, ErrorKind, Journal, Result,
    engine::RunLog,
    journal::{EntryBody, Liveness, RunStatus},
    run::checkpoint::{CallState, Phase},
};

/// What must be written before a run goes on from a checkpoint, so that the journal tells the same as the checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum JournalSync {
    /// Write nothing: the journal knows the run, and nothing newer.
    #[default]
    UpToDate,
    /// Import the checkpoint: the run was kept elsewhere, or is a fork.
    Import,
    /// Undo the journal's version of the run, then import the checkpoint.
    Supersede,
}

impl JournalSync {
    /// Compares a checkpoint with what the session's journal knows.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] if the run went on elsewhere, unless `despite_newer`.
    pub(super) async fn of(journal: &dyn Journal, checkpoint: &Checkpoint, despite_newer: bool) -> Result<Self> {
        let index = journal.index(&checkpoint.ids.session).await?;
        let why = match index.look(|index| index.liveness(&checkpoint.ids)) {
            Liveness::Unknown => return Ok(Self::Import),
            Liveness::Open { attempt: None } => return Ok(Self::UpToDate),
            // A checkpoint without the nonce is of a release that did not write it.
            Liveness::Open { attempt } if checkpoint.attempt.is_none() || attempt == checkpoint.attempt => {
                return Ok(Self::UpToDate);
            }
            Liveness::Over(why) => why,
            _ => "the run went on from a newer one",
        };
        if despite_newer {
            return Ok(Self::Supersede);
        }
        let (run, session) = (&checkpoint.ids.run_id, &checkpoint.ids.session);
        let message = format!(
            "the checkpoint of run '{run}' in session '{session}' is out of date: {why}. Go on with what the journal knows \
             (RunRequest::recover), fork the session, or say despite_newer() to go back"
        );
        Err(Error::new(ErrorKind::Stale, message))
    }

    /// Writes down the run as it stands, with those below it that wait.
    pub(super) fn record(self, log: &RunLog, checkpoint: &Checkpoint) {
        if self == Self::Supersede {
            let run = checkpoint.ids.run_id.clone();
            log.import([(run.clone(), EntryBody::Undone { before_run: run })]);
        }
        if self != Self::UpToDate {
            import(log, checkpoint);
        }
    }
}

fn import(log: &RunLog, checkpoint: &Checkpoint) {
    let ids = Arc::new(checkpoint.ids.clone());
    let run = ids.run_id.clone();
    let note = |body| log.import([(run.clone(), body)]);
    note(EntryBody::RunStarted { ids, fingerprint: checkpoint.fingerprint.clone() });
    let history = checkpoint.history.clone();
    note(EntryBody::HistoryReplaced { reason: "resumed".into(), before: 0, history });
    let globals = checkpoint.globals.iter().flatten().map(|(key, value)| (key.clone(), Some(value.clone())));
    let (state, globals) = (checkpoint.state.clone(), globals.collect::<BTreeMap<_, _>>());
    if !state.is_empty() || !globals.is_empty() {
        note(EntryBody::StateChanged { state, globals });
    }
    for background in &checkpoint.background {
        let (call_id, key, run) = (background.call_id.clone(), background.key.clone(), background.run.clone());
        note(EntryBody::SubAgentLinked { call_id, key, run, background: true });
        background.checkpoint.iter().for_each(|child| import(log, child));
    }
    if let Phase::Ended(exit) = &checkpoint.phase {
        let (status, answer) = (RunStatus::Finished(exit.reason.clone()), Some(exit.answer.as_str().into()));
        note(EntryBody::RunEnded { status, usage: checkpoint.usage.into(), error: None, answer });
    }
    let Phase::Tools(turn) = &checkpoint.phase else { return };
    note(EntryBody::ModelAccepted { step: checkpoint.step, message: Some(turn.message.clone()), exit: None });
    for (call, pending) in turn.message.calls().zip(&turn.calls) {
        let call_id = call.id.clone();
        match &pending.state {
            CallState::Done(output) => {
                note(EntryBody::ToolAnswered { call_id, name: call.name.clone(), output: Some(output.clone()) });
            }
            CallState::Suspended { child: Some(child) } => {
                let (key, run) = (child.ids.agent.to_string(), child.ids.run_id.clone());
                note(EntryBody::SubAgentLinked { call_id, key, run, background: false });
                import(log, child);
            }
            _ => {}
        }
    }
}
