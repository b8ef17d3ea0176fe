//! Where a run begins.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    Answer, Checkpoint, Error, ErrorKind, History, Message, Result, RunIds, WhenWaiting,
    engine::RunLog,
    journal::{EntryBody, JournalWriter, Liveness, Recording, RunStatus, liveness_of},
    run::RunInput,
};
use serde_json::Value;

use super::{AgentParts, JournalSync, RunSlot, Terms, anchor::anchor, replay, resume};
use crate::engine::Opened;

/// Where a run begins.
pub(super) struct Beginning {
    pub(super) ids: Arc<RunIds>,
    pub(super) messages: Vec<Message>,
    pub(super) history: History,
    pub(super) state: BTreeMap<String, Value>,
    pub(super) globals: BTreeMap<String, Value>,
    /// Steps taken elsewhere.
    pub(super) step: u32,
    /// Set when the run goes on; it then keeps its history, answers and counts.
    pub(super) resumed: Option<Box<Checkpoint>>,
    /// What steered an earlier attempt, and was not taken.
    pub(super) steering: Vec<Message>,
    pub(super) answers: BTreeMap<String, Answer>,
    /// What must be written before a run goes on.
    pub(super) sync: JournalSync,
    /// Set when the run is a replay.
    pub(super) recording: Option<Arc<Recording>>,
}

impl Beginning {
    /// Nothing was said yet.
    pub(super) fn empty(ids: Arc<RunIds>) -> Self {
        Self {
            ids,
            messages: Vec::new(),
            history: History::default(),
            state: BTreeMap::new(),
            globals: BTreeMap::new(),
            step: 0,
            resumed: None,
            steering: Vec::new(),
            answers: BTreeMap::new(),
            sync: JournalSync::default(),
            recording: None,
        }
    }

    /// Where a run with this input begins.
    ///
    /// # Errors
    /// Why it may not begin: its session waits for answers, its checkpoint is of another agent or out of date, an answer is
    /// refused; those of the store.
    pub(super) async fn of(
        agent: &AgentParts,
        input: RunInput,
        state: BTreeMap<String, Value>,
        terms: &Terms,
        slot: &RunSlot,
        writer: &dyn JournalWriter,
    ) -> Result<Self> {
        match input {
            RunInput::Messages(messages) => {
                let beginning = Self { messages, state, ..Self::empty(slot.ids.clone()) };
                beginning.after_past(agent, terms, slot, writer).await
            }
            RunInput::Resume { checkpoint, answers } => {
                resume::begin(agent, terms, slot.ids.clone(), checkpoint, answers, writer).await
            }
            RunInput::Recover { answers } => {
                let checkpoint = resume::unfinished(agent, slot).await?;
                let mut ids = checkpoint.ids.clone();
                ids.worker.clone_from(&slot.ids.worker);
                resume::begin(agent, terms, Arc::new(ids), Box::new(checkpoint), answers, writer).await
            }
            RunInput::Replay => replay::begin(agent, terms.run_id.as_deref(), slot, writer).await,
            _ => Err(Error::config("this release does not know that kind of run input")),
        }
    }

    /// A new run, with what was said before.
    async fn after_past(
        mut self,
        agent: &AgentParts,
        terms: &Terms,
        slot: &RunSlot,
        writer: &dyn JournalWriter,
    ) -> Result<Self> {
        if let Some(parent) = &terms.parent {
            if let Some(copied) = &terms.history {
                self.history = copied.clone();
            } else if let Some(recalled) = &terms.agent_id {
                self.history = parent.cx.engine().log().look_at_session(|index| index.history(recalled)).await?;
            }
            return Ok(self);
        }
        // Only a session that was named, in a store that was given, can have a past.
        let engine_keeps_it = terms.steps.as_ref().is_some_and(|steps| steps.engine().journal().is_some());
        if (agent.journal.is_none() && !engine_keeps_it) || !terms.names_session {
            return Ok(self);
        }
        if terms.run_id.is_some() {
            refuse_again(slot).await?;
        }
        let index = slot.journal.index(&slot.ids.session).await?;
        let kept = index.look(|index| index.view(&slot.ids.agent_id));
        let waits = matches!(kept.last_run, Some((_, Some(RunStatus::Interrupted))));
        if waits
            && terms.when_waiting == WhenWaiting::Reject
            && let Some(refusal) = waiting(slot).await?
        {
            return Err(refusal);
        }
        anchor(&index, terms, writer).await?;
        (self.history, self.globals) = (kept.history, kept.globals);
        Ok(self)
    }

    /// Tells the log where the run stands, and writes down that it begins or goes on.
    pub(super) fn record(&self, log: &RunLog, fingerprint: &str, copied: Option<&History>) {
        match &self.resumed {
            Some(checkpoint) => log.adopt(checkpoint),
            None => log.seed(self.history.clone()),
        }
        if let Some(recording) = &self.recording {
            log.replay(recording);
        }
        match &self.resumed {
            Some(checkpoint) => self.record_resumed(log, checkpoint),
            None => self.record_started(log, fingerprint, copied),
        }
    }

    fn record_started(&self, log: &RunLog, fingerprint: &str, copied: Option<&History>) {
        log.record(EntryBody::RunStarted { ids: self.ids.clone(), fingerprint: fingerprint.to_owned() });
        if let Some(history) = copied.filter(|_| self.ids.depth > 0) {
            log.record(EntryBody::HistoryReplaced { reason: "forked".into(), before: 0, history: history.clone() });
        }
        if !self.state.is_empty() {
            log.record(EntryBody::StateChanged { state: self.state.clone(), globals: BTreeMap::new() });
        }
    }

    fn record_resumed(&self, log: &RunLog, checkpoint: &Checkpoint) {
        self.sync.record(log, checkpoint);
        log.record(EntryBody::RunResumed { ids: self.ids.clone(), attempt: log.attempt().to_string() });
        for question in &checkpoint.questions {
            if let Some(answer) = self.answers.get(&question.id) {
                log.record(EntryBody::answered(&question.id, answer));
            }
        }
    }
}

/// The refusal of a run whose session waits for answers.
async fn waiting(slot: &RunSlot) -> Result<Option<Error>> {
    let (session, agent_id) = (&slot.ids.session, &slot.ids.agent_id);
    let asked = slot.journal.index(session).await?.look(|index| index.unfinished(agent_id));
    let Some(checkpoint) = asked else { return Ok(None) };
    let questions = checkpoint.questions.iter().map(|question| format!("'{}' ({})", question.id, question.kind));
    let message = format!(
        "session '{session}' waits for answers: {}; go on with them by RunRequest::recover, or leave them by \
         when_waiting(WhenWaiting::Supersede)",
        questions.collect::<Vec<_>>().join(", ")
    );
    Ok(Some(Error::new(ErrorKind::Busy, message).with_checkpoint(checkpoint)))
}

/// A request with an id of its own that comes again, because its answer was lost on the way, does not run again.
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
