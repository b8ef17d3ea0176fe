//! The run log: a run's interface to its journal and its engine.

mod append;
mod call;
mod calls;
mod children;
mod import;
mod outbox;
mod run_step;
mod step;
mod stored;
mod tree;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

pub use self::call::{CallBody, CallLog, ToolStep};
pub(crate) use self::children::ChildOwner;
use self::{stored::Cursor, tree::Tree};
use crate::{
    error::Result,
    event::Emitter,
    history::{History, ReplaceReason},
    journal::{
        Entry, EntryBody, Journal, JournalWriter, Recording, SessionIndex, Steps,
        tape::{Recorded, RunTape},
    },
    message::{AssistantMessage, Message},
    state::{ChildKey, Exit, Phase, RunIds, RunState},
    storage::{CallStorage, GlobalStorage, State},
    tooling::ToolOutput,
    usage::Usage,
};

/// Records the entries of one run in its journal, and publishes their events as soon as they are
/// durable.
///
/// [`record`](Self::record) applies an entry to the run's state, [`flush`](Self::flush) appends all
/// recorded entries to the journal, and [`commit`](Self::commit) waits until they are durable.
/// Changes of the state and the shared storage go into the same batch, so that a step and its
/// changes are persisted together or not at all; changes made by a tool call are persisted with the
/// call's result.
///
/// Lock order: the tree's outbox, then the run's pending entries, then the tree's states or the
/// storage. No user code runs under any of these locks.
#[derive(Clone)]
pub struct RunLog(Arc<Inner>);

struct Inner {
    ids: Arc<RunIds>,
    attempt: Arc<str>,
    /// `None` once the run has ended.
    writer: Mutex<Option<Arc<dyn JournalWriter>>>,
    emitter: Emitter,
    state: State,
    globals: GlobalStorage,
    /// The states of all runs of the tree.
    tree: Tree,
    /// The run's final state: the tree forgets a child run when the turn that called it ends.
    last: OnceLock<RunState>,
    open: Mutex<Open>,
    /// Uncommitted state and storage changes of unanswered calls. Held last: no other lock is taken
    /// under this one.
    calls: Mutex<BTreeMap<Arc<str>, Arc<CallStorage>>>,
    /// Executes the run's steps.
    steps: OnceLock<Steps>,
    /// Set when a recorded run is replayed.
    replay: OnceLock<Arc<Mutex<RunTape>>>,
}

#[derive(Default)]
struct Open {
    /// Entries that are applied but not yet flushed to the journal.
    pending: Vec<Entry>,
    /// True once the run's start is over: later decisions are scoped to their step.
    entered: bool,
    /// Position in the results of the step that an earlier attempt left.
    cursor: Cursor,
    /// The model's last answer in this attempt, kept so that only changes made by hooks are written
    /// again.
    answered: Option<AssistantMessage>,
    /// Number of sub-agents that were started in the step, by their owner and key.
    children: HashMap<ChildKey, u32>,
    /// Usage of side model calls since the last decision.
    side_usage: Usage,
    /// Usage of steps that were read back instead of executed, until a budget counts it.
    uncounted: Usage,
}

impl RunLog {
    /// Creates the log of the root run `ids`. The entries of its tree are stored in `journal`,
    /// through `writer`.
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

    /// Creates the log of the child run `ids`, in the same tree and with the same shared storage.
    /// `writer` must come from [`writer`](Self::writer) of this log.
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

    /// The journal that stores the entries of the run's tree.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        self.0.tree.journal()
    }

    /// Nonce of the current attempt at the run: every restart has a new one.
    pub fn attempt(&self) -> &Arc<str> {
        &self.0.attempt
    }

    // --- the state of the run ---

    /// Sets the initial conversation.
    pub fn seed(&self, history: History) {
        self.0.tree.seed(&self.0.ids, history);
    }

    /// Continues from a checkpoint: results of the step that an earlier attempt left are not
    /// computed again.
    pub fn adopt(&self, checkpoint: &RunState) {
        self.0.tree.adopt(checkpoint);
        self.open().cursor = Cursor::of(checkpoint);
    }

    /// Returns the run's checkpoint, including the child runs that it waits for.
    pub fn at_rest(&self) -> RunState {
        if self.try_flush().is_err() {
            // Nothing is persisted any more, so the order of changes across the tree is irrelevant.
            let mut open = self.open();
            let changes = self.changes();
            changes.into_iter().for_each(|changes| self.record_in(&mut open, changes));
        }
        let mut rest = self.stands();
        // An application may share its storage among trees, whose entries this tree does not see.
        rest.globals = (self.0.ids.depth == 0).then(|| self.0.globals.kept());
        rest
    }

    /// The run's state in the tree, or its final state if it has ended.
    fn stands(&self) -> RunState {
        let rest = self.0.tree.at_rest(&self.0.ids.run_id);
        rest.unwrap_or_else(|| self.look_at_last(|_, state| state.clone()))
    }

    /// Keeps the final state of a child run for contexts that outlive the run.
    fn keep_last(&self) {
        if self.0.ids.depth > 0 && self.0.last.get().is_none() {
            let mut last = self.stands();
            last.tool_calls = self.tool_calls();
            last.run_meta.gone = last.tree_usage;
            last.run_meta.gone -= last.usage;
            let _ = self.0.last.set(last);
        }
    }

    /// Calls `look` with the run's state in the tree, or with its final state if it has ended.
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

    /// The run's phase, including the states of the sub-agents that its open calls resume.
    pub fn phase(&self) -> Phase {
        self.look(SessionIndex::phase)
    }

    /// Usage of the run itself, without its descendants.
    pub fn usage(&self) -> Usage {
        self.look(|_, state| state.usage)
    }

    /// Usage of the run and all its descendants.
    pub fn tree_usage(&self) -> Usage {
        self.look(SessionIndex::tree_usage)
    }

    /// The conversation.
    pub fn history(&self) -> History {
        self.look(|_, state| state.history.clone())
    }

    /// Calls `look` with the session's index, after a commit: the index includes all that the tree
    /// has written so far.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit) and [`Journal::index`](crate::Journal::index).
    pub async fn look_at_session<R>(&self, look: impl FnOnce(&SessionIndex) -> R) -> Result<R> {
        self.commit().await?;
        Ok(self.journal().index(&self.0.ids.session).await?.look(look))
    }

    /// Like [`look_at_session`](Self::look_at_session), with an index that contains all runs of the
    /// session.
    ///
    /// # Errors
    /// Those of [`look_at_session`](Self::look_at_session).
    pub(crate) async fn look_at_whole_session<R>(&self, look: impl FnOnce(&SessionIndex) -> R) -> Result<R> {
        self.commit().await?;
        Ok(self.journal().whole_index(&self.0.ids.session).await?.look(look))
    }

    /// Number of executions of each tool. A call counts once, regardless of its attempts.
    pub fn tool_calls(&self) -> BTreeMap<String, u32> {
        self.look(|_, state| {
            let mut counts = state.tool_calls.clone();
            for name in state.run_meta.counted.values() {
                *counts.entry(name.to_string()).or_default() += 1;
            }
            counts
        })
    }

    // --- recording ---

    /// Applies an entry to the run's state, and queues it for the next flush.
    pub fn record(&self, body: EntryBody) {
        self.record_in(&mut self.open(), body);
    }

    fn record_in(&self, open: &mut Open, body: EntryBody) {
        let entry = Entry::new(self.0.ids.run_id.clone(), self.0.tree.now(), body);
        self.0.tree.apply(&entry);
        open.pending.push(entry);
    }

    /// Records a closing entry together with pending hook writes: hooks do not rerun past this
    /// point.
    fn record_closed(&self, record: impl FnOnce(&mut Open)) {
        let mut record = Some(record);
        if self.has_changes() {
            let _ = self.flush_after(|open| record.take().map(|record| record(open))); // the run's next commit returns the error
        }
        if let Some(record) = record {
            record(&mut self.open());
        }
    }

    /// Records entries of child runs that are read back instead of executed.
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
    pub(crate) fn record_message(&self, message: Message) -> Result<()> {
        History::check(&message)?;
        self.record(EntryBody::MessageAppended { message });
        Ok(())
    }

    /// Records that a call starts a child run, if `fits` accepts the number of sub-agents started
    /// so far. Returns the result of `fits`.
    pub(crate) fn record_link(&self, link: EntryBody, fits: impl FnOnce(u32) -> bool) -> bool {
        let mut open = self.open();
        let fits = fits(self.look(|_, state| state.sub_agents));
        if fits {
            self.record_in(&mut open, link);
        }
        fits
    }

    /// Records that the run is to end at its next boundary, unless that was recorded before.
    pub(crate) fn record_stop(&self, reason: String) {
        let mut open = self.open();
        if self.stop_requested().is_none() {
            self.record_in(&mut open, EntryBody::StopRequested { reason: reason.into() });
        }
    }

    /// Returns the reason for which the run is to end at its next boundary, if there is one.
    pub(crate) fn stop_requested(&self) -> Option<String> {
        self.look(|_, state| state.stop.clone())
    }

    /// Number of times that the run was resumed.
    pub(crate) fn resumed(&self) -> u32 {
        self.look(|_, state| state.resumed)
    }

    /// Records that another conversation replaces the run's history.
    pub(crate) fn record_history(&self, history: History, reason: ReplaceReason) {
        let mut open = self.open();
        let before = self.history().len();
        self.record_in(&mut open, EntryBody::HistoryReplaced { reason, before, history });
    }

    /// Records the model's answer as the hooks left it and, if it ends the run, the exit. Clears
    /// the decisions made during the model call.
    pub fn record_accepted(&self, step: u32, message: &AssistantMessage, exit: Option<Exit>) {
        self.record_closed(|open| {
            let is_known = open.answered.take().is_some_and(|answered| answered.ptr_eq(message));
            let message = (!is_known).then(|| message.clone());
            self.record_in(open, EntryBody::ModelAccepted { step, message, exit: exit.map(Box::new) });
            open.cursor.end_step();
            open.children.clear();
        });
    }

    /// Records that all calls of a step are answered, with the results that hooks changed and, if
    /// this ends the run, the exit. Clears the decisions and results of the step.
    pub fn record_turn_ended(&self, step: u32, changed: BTreeMap<Arc<str>, ToolOutput>, exit: Option<Exit>) {
        self.record_closed(|open| {
            self.record_in(open, EntryBody::TurnEnded { step, changed, exit: exit.map(Box::new) });
            open.answered = None;
            open.cursor.end_step();
            open.children.clear();
        });
    }

    /// Records a call's answer as the hooks left it.
    pub fn record_answered(&self, call_id: &Arc<str>, name: &Arc<str>, output: &ToolOutput) {
        self.record_final(call_id, |open| {
            let is_known = !open.cursor.is_earlier(call_id)
                && self.look(|_, state| state.finished.get(&**call_id).is_some_and(|finished| finished.ptr_eq(output)));
            let (call_id, name, output) = (call_id.clone(), name.clone(), (!is_known).then(|| output.clone()));
            self.record_in(open, EntryBody::ToolAnswered { call_id, name, output });
        });
    }

    fn finished(&self, call_id: Arc<str>, output: &ToolOutput) {
        let id = call_id.clone();
        self.record_result(&id, |open| {
            open.cursor.finished(&call_id);
            self.record_in(open, EntryBody::ToolFinished { call_id, output: output.clone() });
        });
    }

    /// Ends the run's start: decisions made so far hold for the whole run.
    pub(crate) fn end_beginning(&self) {
        self.open().entered = true;
    }

    // --- replay ---

    /// Replays `recording`: models and tools return its recorded results. Only the first call has
    /// an effect.
    pub fn replay(&self, recording: &Recording) {
        let replay = self.0.replay.get_or_init(|| Arc::new(Mutex::new(RunTape::new(recording))));
        self.run_on(Steps::of(Arc::new(Recorded(replay.clone())), false));
    }

    /// Messages that the recorded run received after this step; empty if no run is replayed.
    pub fn replayed_messages(&self, step: u32) -> Vec<Message> {
        self.replayed().map(|mut replay| replay.messages(step)).unwrap_or_default()
    }

    /// True if a recorded run is replayed.
    pub(crate) fn is_replay(&self) -> bool {
        self.0.replay.get().is_some()
    }

    fn replayed(&self) -> Option<MutexGuard<'_, RunTape>> {
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
