//! Start state of a run.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Checkpoint, Error, ErrorKind, History, Message, Result, RunIds, WhenWaiting,
    engine::RunLog,
    journal::{EntryBody, JournalWriter, Liveness, Recording, RunStatus, liveness_of},
    run::RunInput,
};
use serde_json::Value;

use super::{AgentParts, JournalSync, RunOptions, RunSlot, anchor::anchor, replay, resume};
use crate::engine::Opened;

/// Start state of a run.
pub(super) struct StartState {
    /// State of the run before its first entry.
    pub(super) checkpoint: Box<Checkpoint>,
    /// New messages of the run.
    pub(super) messages: Vec<Message>,
    pub(super) origin: Origin,
}

/// Source of a start state.
pub(super) enum Origin {
    /// The request, together with the session's history.
    Request,
    /// A checkpoint, and the entries that must be written before the run resumes from it.
    Checkpoint(JournalSync),
    /// The recording of a run that is replayed.
    Recording(Arc<Recording>),
}

impl StartState {
    /// Returns the start state of a run with this input.
    ///
    /// # Errors
    /// If the run may not start: its session waits for answers, its checkpoint belongs to another
    /// agent or is out of date, or an answer is refused. Also the errors of the store.
    pub(super) async fn of(
        agent: &AgentParts,
        input: RunInput,
        state: BTreeMap<String, Value>,
        options: &RunOptions,
        slot: &RunSlot,
        writer: &dyn JournalWriter,
    ) -> Result<Self> {
        match input {
            RunInput::Messages(messages) => {
                let mut checkpoint = Box::new(Checkpoint::new((*slot.ids).clone(), agent.fingerprint.as_str()));
                checkpoint.state = state;
                Self { checkpoint, messages, origin: Origin::Request }.after_past(agent, options, slot, writer).await
            }
            RunInput::Resume { checkpoint, answers } => {
                resume::begin(agent, options, slot, checkpoint, answers, writer).await
            }
            RunInput::Recover { answers } => {
                let checkpoint = Box::new(resume::unfinished(agent, slot).await?);
                resume::begin(agent, options, slot, checkpoint, answers, writer).await
            }
            RunInput::Replay => replay::begin(agent, options.run_id.as_deref(), slot, writer).await,
            _ => Err(Error::config("this release does not know that kind of run input")),
        }
    }

    /// Adds the session's history to a new run.
    async fn after_past(
        mut self,
        agent: &AgentParts,
        options: &RunOptions,
        slot: &RunSlot,
        writer: &dyn JournalWriter,
    ) -> Result<Self> {
        if let Some(parent) = &options.parent {
            if let Some(copied) = &options.history {
                self.checkpoint.history = copied.clone();
            } else if let Some(recalled) = &options.agent_id {
                let log = parent.cx.engine().log();
                self.checkpoint.history = log.look_at_session(|index| index.history(recalled)).await?;
            }
            return Ok(self);
        }
        // Only a named session in a configured store can have a history.
        let engine_keeps_it = options.steps.as_ref().is_some_and(|steps| steps.engine().journal().is_some());
        if (agent.journal.is_none() && !engine_keeps_it) || !options.names_session {
            return Ok(self);
        }
        if options.run_id.is_some() {
            refuse_again(slot).await?;
        }
        let index = slot.journal.index(&slot.ids.session).await?;
        let kept = index.look(|index| index.view(&slot.ids.agent_id));
        // A cancelled run needs no decision: cancelling it decided the outcome of its calls.
        let is_open = match &kept.last_run {
            Some((_, Some(status))) => matches!(status, RunStatus::Interrupted | RunStatus::Failed),
            Some((_, None)) => true, // its process died
            None => false,
        };
        if is_open
            && options.when_waiting == WhenWaiting::Reject
            && let Some(refusal) = waiting(slot).await?
        {
            return Err(refusal);
        }
        anchor(&index, options, writer).await?;
        (self.checkpoint.history, self.checkpoint.globals) = (kept.history, Some(kept.globals));
        Ok(self)
    }

    /// True if the run resumes from a checkpoint.
    pub(super) fn is_resumed(&self) -> bool {
        matches!(self.origin, Origin::Checkpoint(_))
    }

    /// Returns the recording, if the run is a replay.
    pub(super) fn recording(&self) -> Option<&Arc<Recording>> {
        match &self.origin {
            Origin::Recording(recording) => Some(recording),
            _ => None,
        }
    }

    /// Initialises the log with the run's state, and records that the run starts or resumes.
    pub(super) fn record(&self, log: &RunLog, ids: &Arc<RunIds>, copied: Option<&History>) {
        match &self.origin {
            Origin::Checkpoint(sync) => {
                log.adopt(&self.checkpoint);
                sync.record(log, &self.checkpoint);
                return self.record_resumed(log, ids);
            }
            Origin::Recording(recording) => log.replay(recording),
            Origin::Request => {}
        }
        log.seed(self.checkpoint.history.clone());
        self.record_started(log, ids, copied);
    }

    fn record_started(&self, log: &RunLog, ids: &Arc<RunIds>, copied: Option<&History>) {
        log.record(EntryBody::RunStarted { ids: ids.clone(), fingerprint: self.checkpoint.fingerprint.clone() });
        if let Some(history) = copied.filter(|_| ids.depth > 0) {
            log.record(EntryBody::HistoryReplaced { reason: "forked".into(), before: 0, history: history.clone() });
        }
        if !self.checkpoint.state.is_empty() {
            log.record(EntryBody::StateChanged { state: self.checkpoint.state.clone(), globals: BTreeMap::new() });
        }
    }

    fn record_resumed(&self, log: &RunLog, ids: &Arc<RunIds>) {
        log.record(EntryBody::RunResumed { ids: ids.clone(), attempt: log.attempt().to_string() });
        for question in &self.checkpoint.questions {
            if let Some(answer) = self.checkpoint.answers.get(&question.id) {
                log.record(EntryBody::answered(&question.id, answer));
            }
        }
    }
}

/// Returns the error for a run whose session waits for answers, or for word of a call in doubt.
async fn waiting(slot: &RunSlot) -> Result<Option<Error>> {
    let (session, agent_id) = (&slot.ids.session, &slot.ids.agent_id);
    let newest = slot.journal.index(session).await?.look(|index| index.unfinished(agent_id));
    let Some(checkpoint) = newest else { return Ok(None) };
    let questions = checkpoint.questions.iter().map(|question| format!("'{}' ({})", question.id, question.kind));
    let questions = questions.collect::<Vec<_>>().join(", ");
    let doubts = checkpoint.in_doubt().join(", ");
    let why = match (questions.is_empty(), doubts.is_empty()) {
        (true, true) => return Ok(None),
        (true, false) => {
            format!("has a run that was cut off during calls ({doubts}), of which it is unknown whether they happened")
        }
        (false, _) => format!("waits for answers: {questions}"),
    };
    let message = format!(
        "session '{session}' {why}; go on with that run by RunRequest::recover, or leave it by \
         when_waiting(WhenWaiting::Supersede)"
    );
    Ok(Some(Error::new(ErrorKind::Busy, message).with_checkpoint(checkpoint)))
}

/// Refuses a request whose run id already exists, so that a client's retry of a request does not
/// run twice.
async fn refuse_again(slot: &RunSlot) -> Result<()> {
    let (run, session) = (&slot.ids.run_id, &slot.ids.session);
    if liveness_of(&*slot.journal, &slot.ids).await? == Liveness::Unknown {
        return Ok(());
    }
    let message = format!(
        "session '{session}' has a run '{run}' already: read its end there, go on with it (RunRequest::recover), or give the \
         new run an id of its own"
    );
    Err(Error::new(ErrorKind::Stale, message))
}
