//! [`RunCx`]: the view of a run for hooks, layers and tools.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Ask, Clock, EngineCx, EngineKey, Inbox, Pause, Scope, clock::millis, per_run::Live, tasks::Tasks};
use crate::{
    budget::Budget,
    deadlines::RunDeadline,
    error::{Error, ErrorKind, Result},
    event::{Emitter, EventKind, EventSink},
    history::{History, ReplaceReason},
    log::RunLog,
    message::Message,
    state::{Answer, BackgroundRun, Checkpoint, Phase, Question, RunIds, id_within},
    storage::{GlobalStorage, Resources, State},
    usage::Usage,
};

/// A run as its hooks, layers and tools see it. Always passed explicitly, never ambient. Cheap to
/// clone.
#[derive(Clone)]
pub struct RunCx(
    pub(crate) Arc<Inner>,
    /// The part of the run that has it.
    pub(crate) Scope,
    /// True within a model call for which a budget has reserved. Further model calls are part of that
    /// call, so they must not wait for its end.
    pub(crate) bool,
);

pub(crate) struct Inner {
    pub(crate) ids: Arc<RunIds>,
    pub(crate) step: AtomicU32,
    /// True once the `before_agent` hooks have run.
    pub(crate) entered: AtomicBool,
    pub(crate) state: State,
    pub(crate) globals: GlobalStorage,
    pub(crate) resources: Resources,
    pub(crate) budget: Budget,
    pub(crate) deadline: Option<RunDeadline>,
    /// True if the parent called this run within a model call for which a budget has reserved.
    pub(crate) is_reserved: bool,
    /// Number of model calls with a reservation in this attempt.
    pub(crate) reserved: AtomicU32,
    /// True once the run was warned that a model reports no usage.
    pub(crate) warned_of_usage: AtomicBool,
    /// Values inherited from ancestors and for descendants: opaque except to `middleware::family`.
    pub(crate) family: Box<dyn Any + Send + Sync>,
    pub(crate) cancel: CancellationToken,
    /// Shared by the whole tree: a pause stops every run in it.
    pub(crate) pause: Pause,
    pub(crate) inbox: Inbox,
    /// Created by the first request: most runs receive none.
    pub(crate) requests: OnceLock<Box<Mutex<PendingRequests>>>,
    /// Key of the executor that may open the run.
    pub(crate) key: Option<EngineKey>,
    /// Values that middlewares hold for this run; dropped with the run.
    pub(crate) live: Live,
    pub(crate) tasks: Tasks,
    pub(crate) emitter: Emitter,
    pub(crate) log: RunLog,
}

/// Requests that the run has not acted on yet: to answer, to wait.
#[derive(Default)]
pub(crate) struct PendingRequests {
    pub(crate) answers: BTreeMap<String, Answer>,
    pub(crate) asked: Vec<Question>,
    /// Questions of an attempt before a restart, by question id.
    pub(crate) open: BTreeMap<String, Question>,
    /// Content of the questions of this attempt, by their ids.
    pub(crate) asks: BTreeMap<String, Value>,
    /// Sub-agents that wait or were paused, by the prefix of the ids of their questions.
    pub(crate) waiting: BTreeSet<Arc<str>>,
    /// Ids of sub-agents whose runs are ready or running.
    pub(crate) at_work: Vec<Arc<str>>,
    /// Background sub-agents of an earlier attempt, until they are resumed.
    pub(crate) background: Vec<BackgroundRun>,
}

impl PendingRequests {
    /// Notes what the question `id` is about; true if one of this id is about something else.
    pub(crate) fn asks(&mut self, id: &str, about: &Value) -> bool {
        let known = self.asks.entry(id.to_owned()).or_insert_with(|| about.clone());
        known != about
    }

    /// True if a sub-agent of the call `id`, or of a hook around it, waits or was paused.
    pub(crate) fn waits(&self, id: &str) -> bool {
        self.waiting.iter().any(|place| is_at(place, id))
    }

    pub(crate) fn ask(&mut self, question: Question) {
        if !self.asked.iter().any(|q| q.id == question.id) {
            self.asked.push(question);
        }
    }
}

impl RunCx {
    // --- ids and position ---

    /// Ids of the run.
    pub fn ids(&self) -> &Arc<RunIds> {
        &self.0.ids
    }

    /// Number of the current step, from 1; 0 before the first.
    pub fn step(&self) -> u32 {
        self.0.step.load(Ordering::Acquire)
    }

    /// True if an earlier attempt began the run: it goes on after a question, a pause or a restart. An
    /// engine that drives a run again from its start makes the same attempt again.
    pub fn is_resumed(&self) -> bool {
        self.attempt() > 1
    }

    /// Number of the attempt at the run, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.log.resumed().saturating_add(1)
    }

    // --- persistent data ---

    /// The persisted conversation. Excludes an open turn, whose tools are still running.
    pub fn history(&self) -> History {
        self.0.log.history()
    }

    /// Replaces the persisted conversation; recorded as a journal entry and an event. (Editing a
    /// request's `messages` changes one call only.)
    pub fn replace_history(&self, history: History, reason: impl Into<ReplaceReason>) {
        self.0.log.record_history(history, reason.into());
    }

    /// Like [`replace_history`](Self::replace_history), and waits until the change is durable: for
    /// a change on which a later effect depends.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if it cannot be persisted.
    pub async fn keep_history(&self, history: History, reason: impl Into<ReplaceReason>) -> Result<()> {
        self.replace_history(history, reason);
        self.0.log.commit().await
    }

    /// Appends a message to the stored conversation, durably: the session has it when this returns,
    /// and so do all further model calls. A request that was built before does not contain it.
    ///
    /// Hooks around model calls may use it. A hook that runs again, since its run is resumed, appends
    /// again: put what must happen once into [`decide`](Self::decide).
    ///
    /// # Errors
    /// [`History`](crate::ErrorKind::History) for a tool result or a message with calls, and while
    /// the calls of a message are open: [`steer`](Self::steer) comes after them.
    /// [`Store`](crate::ErrorKind::Store) if it cannot be persisted.
    pub async fn append(&self, message: Message) -> Result<()> {
        if let Phase::Tools(_) = self.0.log.phase() {
            let message = "a message cannot come between tool calls and their results: use steer(..)";
            return Err(Error::new(ErrorKind::History, message));
        }
        self.0.log.record_message(message)?;
        self.0.log.commit().await
    }

    /// State of this run, declared by the agent's schema.
    pub fn state(&self) -> &State {
        self.1.storage().map_or(&self.0.state, |call| &call.state)
    }

    /// Storage that the whole hierarchy shares.
    pub fn globals(&self) -> &GlobalStorage {
        self.1.storage().map_or(&self.0.globals, |call| &call.globals)
    }

    /// Drops the call scope: writes are journalled with the run's next step instead of the call's
    /// result.
    #[must_use]
    pub(crate) fn of_run(self) -> Self {
        Self(self.0, Scope::Run, self.2)
    }

    /// The run within a model call for which a budget reserved.
    #[must_use]
    pub(crate) fn in_reserved_call(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), true)
    }

    /// True within a model call, of this run or of one above it, for which a budget reserved.
    pub(crate) fn is_in_reserved_call(&self) -> bool {
        self.2 || self.0.is_reserved
    }

    /// Live handles.
    pub fn resources(&self) -> &Resources {
        &self.0.resources
    }

    /// Makes a decision once: when the run is driven again after a restart, returns the first
    /// result without running `decide`. A decision made in `before_agent` holds for the whole run,
    /// any other for its step. Decisions of the same name are returned in order, so a tool uses
    /// [`ToolRequest::decide`](crate::ToolRequest::decide), whose names are scoped to the call.
    ///
    /// # Errors
    /// Those of `decide`; [`Store`](crate::ErrorKind::Store) if the decision cannot be persisted;
    /// in a replay, [`NonDeterminism`](crate::ErrorKind::NonDeterminism) if no such decision was
    /// recorded.
    pub async fn decide(&self, name: &str, decide: impl Future<Output = Result<Value>> + Send) -> Result<Value> {
        self.decide_as(&self.1.name(name), decide).await
    }

    /// As [`decide`](Self::decide), under a name that holds the scope.
    pub(crate) async fn decide_as(
        &self,
        name: &str,
        decide: impl Future<Output = Result<Value>> + Send,
    ) -> Result<Value> {
        let value = self.0.log.decision(name, decide).await?;
        EngineCx(self).count_uncounted();
        Ok(value)
    }

    /// Like [`decide`](Self::decide), for a decision of any type that JSON can represent.
    ///
    /// ```
    /// use agent_core::{Result, RunCx};
    ///
    /// async fn route(cx: &RunCx) -> Result<Vec<String>> {
    ///     cx.decide_typed("route", async { Ok(vec!["north".to_owned()]) }).await
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`decide`](Self::decide); [`Config`](crate::ErrorKind::Config) if the value is not
    /// JSON, or a recorded one has another type.
    pub async fn decide_typed<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        decide: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let misfit = |e| Error::config(format!("decision '{name}' does not fit its type: {e}"));
        let decide = async { serde_json::to_value(decide.await?).map_err(misfit) };
        T::deserialize(self.decide(name, decide).await?).map_err(misfit)
    }

    /// Sleeps durably for `time`: when the run is driven again after a restart, it sleeps for the
    /// remaining time. As with [`decide`](Self::decide), sleeps of the same name are matched in
    /// order.
    ///
    /// # Errors
    /// [`Store`](crate::ErrorKind::Store) if the sleep cannot be persisted.
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
        let name = self.1.name(&format!("sleep/{name}"));
        let until = self.decide_as(&name, async { Ok(self.now().saturating_add(millis(time)).into()) }).await?;
        let left = until.as_u64().unwrap_or_default().saturating_sub(self.now());
        self.0.log.sleep_step(&name, Duration::from_millis(left)).await
    }

    // --- limits ---

    /// Budgets, shared by the tree.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Deadline of the run, with the exit reason when it passes. It bounds the child runs too.
    pub fn deadline(&self) -> Option<&RunDeadline> {
        self.0.deadline.as_ref()
    }

    /// Usage of this run itself so far.
    pub fn usage(&self) -> Usage {
        self.0.log.usage()
    }

    /// Usage of this run and all its descendants so far.
    pub fn tree_usage(&self) -> Usage {
        self.0.log.tree_usage()
    }

    /// Number of executions of each tool so far. A call counts once, regardless of its attempts.
    pub fn tool_calls(&self) -> BTreeMap<String, u32> {
        self.0.log.tool_calls()
    }

    // --- control ---

    /// Cancels this run and all its descendants when triggered.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Requests a pause of the whole tree at its next boundaries.
    pub fn pause(&self) {
        self.0.pause.request_all();
    }

    /// Ends the run at its next boundary; `reason` becomes the exit reason. Only the first call has
    /// an effect. The request is journalled with the run's next entries, so it also holds after a
    /// question, a pause or a restart.
    pub fn stop(&self, reason: impl Into<String>) {
        self.0.log.record_stop(reason.into());
    }

    /// The reason of a requested stop, if there is one.
    pub fn stop_requested(&self) -> Option<String> {
        self.0.log.stop_requested()
    }

    /// Inserts a message before the next model call. A run that is about to finish continues for
    /// it.
    ///
    /// # Errors
    /// Those of [`Inbox::push`].
    pub fn steer(&self, message: Message) -> Result<()> {
        self.0.inbox.push(message)
    }

    /// Returns the answer to a question about the current step, or suspends the run until there is
    /// one. In `before_agent` the question is about the run: it is asked once, regardless of the
    /// step at which the run resumes.
    ///
    /// In a tool or a hook of a tool call, use [`ToolRequest::ask`](crate::ToolRequest::ask), whose
    /// question belongs to the call: this method fails there.
    ///
    /// # Errors
    /// [`Interrupted`](crate::ErrorKind::Interrupted) while there is no answer;
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the answer does not have the form of
    /// `T`; [`Middleware`](crate::ErrorKind::Middleware) in a tool or a hook of a tool call.
    pub fn ask<T: DeserializeOwned>(&self, kind: &str, payload: Value) -> Result<T> {
        self.ask_with(Ask::new(kind, payload))?.parse()
    }

    /// Like [`ask`](Self::ask), for a question with a schema, an expiry or an actor.
    ///
    /// # Errors
    /// [`Interrupted`](crate::ErrorKind::Interrupted) while there is no answer;
    /// [`Timeout`](crate::ErrorKind::Timeout) if the question has expired and has no default.
    pub fn ask_with(&self, ask: Ask) -> Result<Answer> {
        if let Some(call) = self.1.call() {
            return Err(Error::new(
                ErrorKind::Middleware,
                format!("a question about the call '{call}' must be asked with ToolRequest::ask, not with RunCx::ask"),
            ));
        }
        let step = self.scope_step();
        self.ask_at(&format!("step-{step}"), step, &Value::Null, ask)
    }

    /// Current time in milliseconds since 1970, UTC: from the [`Clock`] among the resources, or
    /// else the system clock.
    pub fn now(&self) -> u64 {
        self.0.resources.get::<Clock>().map_or_else(|_| Clock::default().now(), |clock| clock.now())
    }

    /// True when the `before_agent` hooks have run.
    pub(crate) fn has_entered(&self) -> bool {
        self.0.entered.load(Ordering::Acquire)
    }

    /// Records that the sub-agent at `place` waits, so that no layer can swallow it, and what it
    /// asks.
    pub(crate) fn waits_for(&self, place: &Arc<str>, child: &Checkpoint) {
        let mut pending = self.pending();
        child.questions.iter().for_each(|question| pending.ask(question.under(place)));
        pending.waiting.insert(place.clone());
    }

    /// The answers to questions of the sub-agent at `place`, by their ids there.
    pub(crate) fn answers_of(&self, place: &str) -> BTreeMap<String, Answer> {
        let within = |id: &String| id_within(id, place).map(str::to_owned);
        let Some(pending) = self.pending_if_any() else { return BTreeMap::new() };
        pending.answers.iter().filter_map(|(id, v)| Some((within(id)?, v.clone()))).collect()
    }

    // --- events ---

    /// Emits an event, after the events of everything the run did so far.
    pub fn emit(&self, kind: EventKind) {
        if self.is_observed() {
            self.0.log.hand_over();
            self.0.emitter.emit(kind);
        }
    }

    /// True if the run has event readers: an expensive event need not be built without one.
    pub fn is_observed(&self) -> bool {
        self.0.emitter.is_observed()
    }

    /// Also sends the events of this run and all its descendants to `sink`.
    pub fn attach(&self, sink: Arc<dyn EventSink>) {
        self.0.emitter.attach(sink);
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.0.requests.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`pending`](Self::pending), but `None` if nothing was requested so far.
    pub(crate) fn pending_if_any(&self) -> Option<MutexGuard<'_, PendingRequests>> {
        self.0.requests.get().map(|pending| pending.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// True if `place` is that of the call `id`, or within it.
pub(crate) fn is_at(place: &str, id: &str) -> bool {
    place == id || id_within(place, id).is_some()
}

impl fmt::Debug for RunCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunCx").field("ids", &self.0.ids).field("step", &self.step()).finish_non_exhaustive()
    }
}
