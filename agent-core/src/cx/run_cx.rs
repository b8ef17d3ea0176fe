//! [`RunCx`]: what every hook, layer and tool sees of its run.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Ask, Clock, EngineCx, EngineKey, Inbox, Pause, clock::millis, per_run::Live, tasks::Tasks};
use crate::{
    budget::Budget,
    deadlines::RunDeadline,
    error::Result,
    event::{Emitter, EventKind, EventSink},
    history::{History, ReplaceReason},
    log::RunLog,
    message::Message,
    state::{Answer, BackgroundRun, Checkpoint, Question, RunIds, id_within},
    storage::{CallStorage, GlobalStorage, Resources, State},
    usage::Usage,
};

/// A run, as its hooks, layers and tools see it. Always handed over explicitly, never ambient. Cheap to clone.
#[derive(Clone)]
pub struct RunCx(
    pub(crate) Arc<Inner>,
    /// What the tool of a call has in place of the run's own storage and state.
    pub(crate) Option<Arc<CallStorage>>,
);

pub(crate) struct Inner {
    pub(crate) ids: Arc<RunIds>,
    pub(crate) step: AtomicU32,
    /// True when the `before_agent` hooks have run.
    pub(crate) entered: AtomicBool,
    pub(crate) state: State,
    pub(crate) globals: GlobalStorage,
    pub(crate) resources: Resources,
    pub(crate) budget: Budget,
    pub(crate) deadline: Option<RunDeadline>,
    /// How many model calls had a reservation in this attempt.
    pub(crate) reserved: AtomicU32,
    /// What the run has of runs above and for its descendants: only `middleware::family` knows what that is.
    pub(crate) family: Box<dyn Any + Send + Sync>,
    pub(crate) cancel: CancellationToken,
    /// Shared by the whole tree: a pause stops every run of it.
    pub(crate) pause: Pause,
    pub(crate) inbox: Inbox,
    /// Made with the first request: of most runs nobody requests anything.
    pub(crate) requests: OnceLock<Box<Mutex<PendingRequests>>>,
    /// What opens the run for its executor.
    pub(crate) key: Option<EngineKey>,
    /// What middlewares keep for this run; it goes with the run.
    pub(crate) live: Live,
    pub(crate) tasks: Tasks,
    pub(crate) emitter: Emitter,
    pub(crate) log: RunLog,
}

/// Requests to the run that it has not acted on: to stop, to answer, to wait.
#[derive(Default)]
pub(crate) struct PendingRequests {
    pub(crate) stop: Option<String>,
    pub(crate) answers: BTreeMap<String, Answer>,
    pub(crate) asked: Vec<Question>,
    /// What an attempt before a restart asked, by question id.
    pub(crate) open: BTreeMap<String, Question>,
    /// Where sub-agents stand that wait, by the call that started each.
    pub(crate) children: BTreeMap<String, Box<Checkpoint>>,
    /// The ids of sub-agents whose runs are ready or under way.
    pub(crate) at_work: Vec<Arc<str>>,
    /// Sub-agents of an earlier attempt that ran in the background, until somebody goes on with them.
    pub(crate) background: Vec<BackgroundRun>,
}

impl PendingRequests {
    pub(crate) fn ask(&mut self, question: Question) {
        if !self.asked.iter().any(|q| q.id == question.id) {
            self.asked.push(question);
        }
    }
}

impl RunCx {
    // --- who and where ---

    /// Who runs.
    pub fn ids(&self) -> &Arc<RunIds> {
        &self.0.ids
    }

    /// The step under way, from 1; 0 before the first.
    pub fn step(&self) -> u32 {
        self.0.step.load(Ordering::Acquire)
    }

    // --- what is kept ---

    /// The kept conversation. A turn whose tools are still running is not in it.
    pub fn history(&self) -> History {
        self.0.log.history()
    }

    /// Replaces the kept conversation: a journal entry and an event. (Editing a request's `messages` changes one call only.)
    pub fn replace_history(&self, history: History, reason: impl Into<ReplaceReason>) {
        self.0.log.record_history(history, reason.into());
    }

    /// As [`replace_history`](Self::replace_history), and durable when this returns: for what must not be forgotten once
    /// something was made of it.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if it cannot be kept.
    pub async fn keep_history(&self, history: History, reason: impl Into<ReplaceReason>) -> Result<()> {
        self.replace_history(history, reason);
        self.0.log.commit().await
    }

    /// What this run keeps, declared by the agent's schema.
    pub fn state(&self) -> &State {
        self.1.as_ref().map_or(&self.0.state, |call| &call.state)
    }

    /// What the whole hierarchy shares.
    pub fn globals(&self) -> &GlobalStorage {
        self.1.as_ref().map_or(&self.0.globals, |call| &call.globals)
    }

    /// The run itself: what is changed through it is kept with the run's next step, whichever call it was that has this.
    #[must_use]
    pub(crate) fn of_run(self) -> Self {
        Self(self.0, None)
    }

    /// Live handles.
    pub fn resources(&self) -> &Resources {
        &self.0.resources
    }

    /// Makes a decision once: when the run is driven again after a restart, the first result is given back and `decide` is
    /// not run. What `before_agent` decides holds for the run, anything else for the step. Decisions of one name are given
    /// back in their order, so a tool uses [`ToolRequest::decide`](crate::ToolRequest::decide): its name is the call's own.
    ///
    /// # Errors
    /// Those of `decide`; [`Store`](crate::ErrorKind::Store) if it cannot be kept; in a replay,
    /// [`NonDeterminism`](crate::ErrorKind::NonDeterminism) if no such decision was recorded.
    pub async fn decide(&self, name: &str, decide: impl Future<Output = Result<Value>> + Send) -> Result<Value> {
        let value = self.0.log.decision(name, decide).await?;
        EngineCx(self).count_uncounted();
        Ok(value)
    }

    /// Waits until this time has passed since it was first asked for: when the run is driven again after a restart, for what is
    /// left of it. As with [`decide`](Self::decide), waits of one name are gone on with in their order.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if it cannot be kept.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use agent_core::{Result, ToolOutput, ToolRequest};
    ///
    /// async fn remind(req: ToolRequest) -> Result<ToolOutput> {
    ///     req.cx.sleep(&format!("remind/{}", req.call.id), Duration::from_secs(24 * 3600)).await?;
    ///     Ok(ToolOutput::text("It is time."))
    /// }
    /// ```
    pub async fn sleep(&self, name: &str, time: Duration) -> Result<()> {
        let name = format!("sleep/{name}");
        let until = self.decide(&name, async { Ok(self.now().saturating_add(millis(time)).into()) }).await?;
        let left = until.as_u64().unwrap_or_default().saturating_sub(self.now());
        self.0.log.sleep_step(&name, Duration::from_millis(left)).await
    }

    // --- allowance ---

    /// The ledger that the tree shares.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// When the run must be over, and what its exit reason is then. The child runs have no more time.
    pub fn deadline(&self) -> Option<&RunDeadline> {
        self.0.deadline.as_ref()
    }

    /// What this run used itself so far.
    pub fn usage(&self) -> Usage {
        self.0.log.usage()
    }

    /// What this run used so far with all its descendants.
    pub fn tree_usage(&self) -> Usage {
        self.0.log.tree_usage()
    }

    /// How often each tool was run so far, counting a call once however often it was tried.
    pub fn tool_calls(&self) -> BTreeMap<String, u32> {
        self.0.log.tool_calls()
    }

    // --- control ---

    /// Cancels this run and all its descendants when triggered.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Asks the whole tree to pause at its next boundaries.
    pub fn pause(&self) {
        self.0.pause.request_all();
    }

    /// Ends the run at its next boundary; `reason` becomes the exit reason. The first caller's reason is kept.
    pub fn stop(&self, reason: impl Into<String>) {
        self.pending().stop.get_or_insert(reason.into());
    }

    /// Why the run is to end at its next boundary, if it is.
    pub fn stop_requested(&self) -> Option<String> {
        self.pending_if_any()?.stop.clone()
    }

    /// Puts a message before the next model call. A run that was about to finish goes on for it.
    ///
    /// # Errors
    /// As [`Inbox::push`].
    pub fn steer(&self, message: Message) -> Result<()> {
        self.0.inbox.push(message)
    }

    /// Returns the answer to a question about the step under way, or suspends the run until there is one. In `before_agent`
    /// it is a question about the run: asked once, at whichever step the run goes on.
    ///
    /// In a tool or a tool hook, use [`ToolRequest::ask`](crate::ToolRequest::ask): its question belongs to the call.
    ///
    /// # Errors
    /// [`Interrupted`](crate::ErrorKind::Interrupted) while there is no answer;
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the answer has another form.
    pub fn ask<T: DeserializeOwned>(&self, kind: &str, payload: Value) -> Result<T> {
        self.ask_with(Ask::new(kind, payload))?.parse()
    }

    /// As [`ask`](Self::ask), for a question with a schema, an end or a person of its own.
    ///
    /// # Errors
    /// [`Interrupted`](crate::ErrorKind::Interrupted) while there is no answer; [`Timeout`](crate::ErrorKind::Timeout) if there
    /// can be none any more, and the question has no default.
    pub fn ask_with(&self, ask: Ask) -> Result<Answer> {
        let step = if self.0.entered.load(Ordering::Acquire) { self.step() } else { 0 };
        self.ask_at(&format!("step-{step}"), step, &Value::Null, ask)
    }

    /// What time it is, in milliseconds since 1970, UTC: by the [`Clock`] among the resources, or else the system's.
    pub fn now(&self) -> u64 {
        self.0.resources.get::<Clock>().map_or_else(|_| Clock::default().now(), |clock| clock.now())
    }

    /// Records that the sub-agent of the call `place` waits, so that no layer can swallow it, and what it asks.
    pub(crate) fn waits_for(&self, place: &str, child: &Checkpoint) {
        let mut pending = self.pending();
        child.questions.iter().for_each(|question| pending.ask(question.under(place)));
        pending.children.insert(place.to_owned(), Box::new(child.clone()));
    }

    /// The answers to questions of the sub-agent that `call_id` started, by their ids there.
    pub(crate) fn answers_of(&self, call_id: &str) -> BTreeMap<String, Answer> {
        let within = |id: &String| id_within(id, call_id).map(str::to_owned);
        let Some(pending) = self.pending_if_any() else { return BTreeMap::new() };
        pending.answers.iter().filter_map(|(id, v)| Some((within(id)?, v.clone()))).collect()
    }

    // --- others ---

    /// Sends an event, after those of all that the run did so far.
    pub fn emit(&self, kind: EventKind) {
        if self.is_observed() {
            self.0.log.hand_over();
            self.0.emitter.emit(kind);
        }
    }

    /// True if anybody looks at the run's events now: one that is costly to make is not made for nobody.
    pub fn is_observed(&self) -> bool {
        self.0.emitter.is_observed()
    }

    /// Sends the events of this run, and of all its descendants, to `sink` too.
    pub fn attach(&self, sink: Arc<dyn EventSink>) {
        self.0.emitter.attach(sink);
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.0.requests.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`pending`](Self::pending), if anything was requested so far.
    pub(crate) fn pending_if_any(&self) -> Option<MutexGuard<'_, PendingRequests>> {
        self.0.requests.get().map(|pending| pending.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for RunCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunCx").field("ids", &self.0.ids).field("step", &self.step()).finish_non_exhaustive()
    }
}
