//! One run's side of its journal and its engine.

mod append;
mod calls;
mod import;
mod outbox;
mod restored;
mod run_step;
mod step;
mod tool_step;
mod tree;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

pub use self::tool_step::{CallWitness, ToolStep};
use self::{restored::Restored, tree::Tree};
use crate::{
    error::Result,
    event::Emitter,
    history::{History, ReplaceReason},
    journal::{
        Entry, EntryBody, Journal, JournalWriter, Recording, SessionIndex, Steps,
        replay::{Recorded, Replay},
    },
    llm::ModelResponse,
    message::{AssistantMessage, Message},
    state::{Begun, Exit, Phase, RunIds, RunState},
    storage::{CallStorage, GlobalStorage, State},
    tooling::ToolOutput,
    usage::Usage,
};

/// Writes what one run does, and tells the readers of its events as soon as it is durable.
///
/// [`record`](Self::record) applies an entry to the run's state, [`flush`](Self::flush) appends all that was recorded to the
/// journal, and [`commit`](Self::commit) waits until it is durable. What the state and the shared storage changed
/// meanwhile goes into the same batch, so that a step and what it changed are kept together or not at all; what a call changed
/// goes with that call's own result.
///
/// Lock order: the tree's outbox, then the run's pending entries, then the tree's states or the storage. No user code runs under
/// any of them.
#[derive(Clone)]
pub struct RunLog(Arc<Inner>);

struct Inner {
    ids: Arc<RunIds>,
    attempt: Arc<str>,
    /// None when the run is over.
    writer: Mutex<Option<Arc<dyn JournalWriter>>>,
    emitter: Emitter,
    state: State,
    globals: GlobalStorage,
    /// The states of all runs of the tree.
    tree: Tree,
    /// Where the run stood when it was over: the tree forgets a child run when its caller's turn is over.
    last: OnceLock<RunState>,
    open: Mutex<Open>,
    /// What calls without an answer have of the state and the storage. Nothing is locked while this is.
    calls: Mutex<BTreeMap<Arc<str>, Arc<CallStorage>>>,
    /// What makes the run's steps.
    steps: OnceLock<Steps>,
    /// Set when a recorded run is driven again.
    replay: OnceLock<Arc<Mutex<Replay>>>,
}

#[derive(Default)]
struct Open {
    /// Entries that are applied, and not flushed to the journal yet.
    pending: Vec<Entry>,
    /// True when the run's beginning is over: what is decided from then on holds for its step.
    entered: bool,
    /// What an earlier attempt left of the step under way.
    restored: Restored,
    /// What the model last answered in this attempt, so that only what hooks changed about it is written again.
    answered: Option<AssistantMessage>,
    /// What side calls of models used since the last decision.
    side_usage: Usage,
    /// What steps used that were not made again, until a budget counts it.
    uncounted: Usage,
}

impl RunLog {
    /// A log for the run `ids` at the top of a tree whose entries are kept in `journal`, by `writer`.
    pub fn new(
        ids: Arc<RunIds>,
        journal: Arc<dyn Journal>,
        writer: Arc<dyn JournalWriter>,
        emitter: Emitter,
        state: State,
        globals: GlobalStorage,
    ) -> Self {
        Self::of(ids, Tree::new(journal), writer, emitter, state, globals, OnceLock::new())
    }

    /// A log for the child run `ids`: in the same tree, and with the same shared storage. `writer` is that of
    /// [this run](Self::writer).
    #[must_use]
    pub fn child(&self, ids: Arc<RunIds>, writer: Arc<dyn JournalWriter>, emitter: Emitter, state: State) -> Self {
        let steps = self.steps().clone().into();
        Self::of(ids, self.0.tree.clone(), writer, emitter, state, self.0.globals.clone(), steps)
    }

    fn of(
        ids: Arc<RunIds>,
        tree: Tree,
        writer: Arc<dyn JournalWriter>,
        emitter: Emitter,
        state: State,
        globals: GlobalStorage,
        steps: OnceLock<Steps>,
    ) -> Self {
        tree.seed(&ids, History::default());
        Self(Arc::new(Inner {
            ids,
            attempt: crate::state::new_id().into(),
            writer: Mutex::new(Some(writer)),
            emitter,
            state,
            globals,
            tree,
            last: OnceLock::new(),
            open: Mutex::default(),
            calls: Mutex::default(),
            steps,
            replay: OnceLock::new(),
        }))
    }

    /// Where the entries of the run's tree are kept.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        self.0.tree.journal()
    }

    /// The nonce of this attempt at the run: another one after every restart.
    pub fn attempt(&self) -> &Arc<str> {
        &self.0.attempt
    }

    // --- where the run stands ---

    /// Begins with this conversation.
    pub fn seed(&self, history: History) {
        self.0.tree.seed(&self.0.ids, history);
    }

    /// Goes on from where the run stood: what the earlier attempt left of its step is not done again.
    pub fn adopt(&self, checkpoint: &RunState) {
        self.0.tree.adopt(checkpoint);
        self.open().restored = Restored::of(checkpoint);
    }

    /// Where the run stands now, and the child runs that it waits for: its checkpoint.
    pub fn at_rest(&self) -> RunState {
        if self.try_flush().is_err() {
            // Nothing is kept any more, so the order of what the runs of the tree changed is nobody's.
            let mut open = self.open();
            let changes = self.changes();
            changes.into_iter().for_each(|changes| self.record_in(&mut open, changes));
        }
        let mut rest = self.stands();
        // An application may share its storage among trees, whose entries this one does not see.
        rest.globals = (self.0.ids.depth == 0).then(|| self.0.globals.kept());
        rest
    }

    /// Where the run stands in the tree, or stood when it was over.
    fn stands(&self) -> RunState {
        let rest = self.0.tree.at_rest(&self.0.ids.run_id);
        rest.unwrap_or_else(|| self.look_at_last(|_, state| state.clone()))
    }

    /// Keeps where a child run stands, for whoever has its context still.
    fn keep_last(&self) {
        if self.0.ids.depth > 0 && self.0.last.get().is_none() {
            let mut last = self.stands();
            last.tool_calls = self.tool_calls();
            last.trail.gone = last.tree_usage;
            last.trail.gone -= last.usage;
            let _ = self.0.last.set(last);
        }
    }

    /// Looks at the run's state in the tree, or as it was when the run was over.
    fn look<R>(&self, look: impl Fn(&SessionIndex, &RunState) -> R) -> R {
        self.0.tree.look(&self.0.ids.run_id, &look).unwrap_or_else(|| self.look_at_last(look))
    }

    fn look_at_last<R>(&self, look: impl FnOnce(&SessionIndex, &RunState) -> R) -> R {
        let index = SessionIndex::default();
        match self.0.last.get() {
            Some(last) => look(&index, last),
            None => look(&index, &RunState::new((*self.0.ids).clone(), "")),
        }
    }

    /// What comes next in the run, with where the sub-agents stand that its open calls go on with.
    pub fn phase(&self) -> Phase {
        self.look(SessionIndex::phase)
    }

    /// What the run used itself.
    pub fn usage(&self) -> Usage {
        self.look(|_, state| state.usage)
    }

    /// What the run used with all its descendants.
    pub fn tree_usage(&self) -> Usage {
        self.look(SessionIndex::tree_usage)
    }

    /// The conversation.
    pub fn history(&self) -> History {
        self.look(|_, state| state.history.clone())
    }

    /// Looks at what the session's entries mean, with all that the tree wrote so far.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) and [`Journal::index`](crate::Journal::index).
    pub async fn look_at_session<R>(&self, look: impl FnOnce(&SessionIndex) -> R) -> Result<R> {
        self.commit().await?;
        Ok(self.journal().index(&self.0.ids.session).await?.look(look))
    }

    /// As [`look_at_session`](Self::look_at_session), at an index that has all of its runs.
    ///
    /// # Errors
    /// As there.
    pub async fn look_at_whole_session<R>(&self, look: impl FnOnce(&SessionIndex) -> R) -> Result<R> {
        self.commit().await?;
        Ok(self.journal().whole_index(&self.0.ids.session).await?.look(look))
    }

    /// How often each tool was run, counting a call once however often it was tried.
    pub fn tool_calls(&self) -> BTreeMap<String, u32> {
        self.look(|_, state| {
            let mut counts = state.tool_calls.clone();
            for name in state.trail.counted.values() {
                *counts.entry(name.to_string()).or_default() += 1;
            }
            counts
        })
    }

    // --- recording ---

    /// Applies an entry to the run's state, and keeps it for the next flush.
    pub fn record(&self, body: EntryBody) {
        self.record_in(&mut self.open(), body);
    }

    fn record_in(&self, open: &mut Open, body: EntryBody) {
        let entry = Entry::new(self.0.ids.run_id.clone(), self.0.tree.now(), body);
        self.0.tree.apply(&entry);
        open.pending.push(entry);
    }

    /// Records what closes something. No hook sees that again after a crash: what hooks changed until then is kept in the same batch.
    fn record_closed(&self, record: impl FnOnce(&mut Open)) {
        let mut record = Some(record);
        if self.has_changes() {
            let _ = self.flush_after(|open| record.take().map(|record| record(open))); // the run's next commit fails with it
        }
        if let Some(record) = record {
            record(&mut self.open());
        }
    }

    /// Records entries of child runs, which are not made again.
    fn record_all(&self, open: &mut Open, entries: Vec<Entry>) {
        for entry in entries {
            self.0.tree.apply(&entry);
            open.pending.push(entry);
        }
    }

    /// Records a message that neither calls a tool nor answers a call.
    ///
    /// # Errors
    /// As [`History::push`].
    pub fn record_message(&self, message: Message) -> Result<()> {
        History::check(&message)?;
        self.record(EntryBody::MessageAppended { message });
        Ok(())
    }

    /// Records that a call starts a child run, if as many as were started `fit`.
    pub(crate) fn record_link(&self, link: EntryBody, fits: impl FnOnce(u32) -> bool) -> bool {
        let mut open = self.open();
        let fits = fits(self.look(|_, state| state.sub_agents));
        if fits {
            self.record_in(&mut open, link);
        }
        fits
    }

    /// Records that another conversation takes the place of the run's.
    pub fn record_history(&self, history: History, reason: ReplaceReason) {
        let mut open = self.open();
        let before = self.history().len();
        self.record_in(&mut open, EntryBody::HistoryReplaced { reason, before, history });
    }

    /// Records the model's answer as the hooks left it, and how the run is to end if it ends it. What was decided in the call is
    /// forgotten.
    pub fn record_accepted(&self, step: u32, message: &AssistantMessage, exit: Option<Exit>) {
        self.record_closed(|open| {
            let is_known = open.answered.take().is_some_and(|answered| answered.ptr_eq(message));
            let message = (!is_known).then(|| message.clone());
            self.record_in(open, EntryBody::ModelAccepted { step, message, exit: exit.map(Box::new) });
            open.restored = Restored::default();
        });
    }

    /// Records that all calls of a step's answer are answered, what hooks changed about the results, and how the run is to end if
    /// that ends it. What was decided and done in the step is forgotten.
    pub fn record_turn_ended(&self, step: u32, changed: BTreeMap<Arc<str>, ToolOutput>, exit: Option<Exit>) {
        self.record_closed(|open| {
            self.record_in(open, EntryBody::TurnEnded { step, changed, exit: exit.map(Box::new) });
            (open.answered, open.restored) = (None, Restored::default());
        });
    }

    /// Records a call's answer as the hooks left it.
    pub fn record_answered(&self, call_id: &Arc<str>, name: &Arc<str>, output: &ToolOutput) {
        self.record_final(call_id, |open| {
            let is_known = !open.restored.has_output(call_id)
                && self.look(|_, state| state.finished.get(&**call_id).is_some_and(|finished| finished.ptr_eq(output)));
            let (call_id, name, output) = (call_id.clone(), name.clone(), (!is_known).then(|| output.clone()));
            self.record_in(open, EntryBody::ToolAnswered { call_id, name, output });
        });
    }

    // --- what an earlier attempt left ---

    /// How an attempt before a restart began a call and left it without a result; none if it is not in doubt.
    pub fn in_doubt(&self, call_id: &str) -> Option<Begun> {
        self.open().restored.in_doubt(call_id)
    }

    /// Takes a call out of doubt: it did not happen, or may be repeated.
    pub fn clear_doubt(&self, call_id: &str) {
        self.open().restored.clear_doubt(call_id);
    }

    /// Records what became of a call in doubt, as if its tool had just run.
    pub fn resolve_doubt(&self, call_id: &Arc<str>, output: &ToolOutput) {
        self.clear_doubt(call_id);
        self.finished(call_id.clone(), output);
    }

    /// The next of the model's answers from before a restart: it stands in for the call, and was counted when it came.
    pub fn next_answered(&self) -> Option<ModelResponse> {
        self.open().restored.next_answer().map(|answer| (*answer).clone())
    }

    fn finished(&self, call_id: Arc<str>, output: &ToolOutput) {
        let id = call_id.clone();
        self.record_result(&id, |open| {
            open.restored.forget_output(&call_id);
            self.record_in(open, EntryBody::ToolFinished { call_id, output: output.clone() });
        });
    }

    /// The decisions made so far hold for the whole run.
    pub(crate) fn end_beginning(&self) {
        self.open().entered = true;
    }

    /// True if something was decided under `name` before a restart, or in the run that is replayed, and not read back yet.
    pub fn is_decided(&self, name: &str) -> bool {
        let replayed = self.replayed().is_some_and(|replay| replay.is_decided(name));
        replayed || self.open().restored.is_decided(name)
    }

    // --- replay ---

    /// Takes what models and tools give from a recording from now on; from the first one, if it is told of several.
    pub fn replay(&self, recording: &Recording) {
        let replay = self.0.replay.get_or_init(|| Arc::new(Mutex::new(Replay::new(recording))));
        self.run_on(Steps::of(Arc::new(Recorded(replay.clone())), false));
    }

    /// Messages that came to the recorded run after this step; none if no run is replayed.
    pub fn replayed_messages(&self, step: u32) -> Vec<Message> {
        self.replayed().map(|mut replay| replay.messages(step)).unwrap_or_default()
    }

    /// True if a recorded run is driven again.
    pub(crate) fn is_replay(&self) -> bool {
        self.0.replay.get().is_some()
    }

    fn replayed(&self) -> Option<MutexGuard<'_, Replay>> {
        Some(self.0.replay.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RunLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLog").field("run", &self.0.ids.run_id).finish_non_exhaustive()
    }
}
