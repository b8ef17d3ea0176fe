//! [`EngineCx`]: what an executor may do with a run and a hook may not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Context,
};

use futures::future::BoxFuture;

use super::{Inbox, Pause, RunCx};
use crate::{
    amounts::Amounts,
    event::Emitter,
    log::RunLog,
    state::{Question, id_within},
    storage::CallStorage,
    usage::Usage,
};

/// What opens the runs of one executor.
///
/// Hooks, layers and tools have a [`RunCx`], by which nobody reaches the run's journal. The executor's own services have no
/// more than that, and the key that the executor gave the run in [`RunParts::key`](crate::engine::RunParts::key).
///
/// ```
/// use agent_core::{ModelRequest, engine::EngineKey};
///
/// /// What an executor's innermost service looks up.
/// fn attempt(key: EngineKey, request: &ModelRequest) -> Option<&str> {
///     key.open(&request.cx).map(|run| &**run.log().attempt())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineKey(u64);

impl EngineKey {
    /// A key like no other.
    #[expect(clippy::new_without_default, reason = "two of them are never equal")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens a run to which this key was given.
    pub fn open(self, cx: &RunCx) -> Option<EngineCx<'_>> {
        (cx.0.key == Some(self)).then_some(EngineCx(cx))
    }
}

/// A run, as its executor sees it: given out by its [`RunDriver`](crate::engine::RunDriver), or by the [`EngineKey`] that it was
/// given, which opens it for descendants too.
#[derive(Clone, Copy, Debug)]
pub struct EngineCx<'a>(pub(crate) &'a RunCx);

impl<'a> EngineCx<'a> {
    /// The engine that keeps steps, and the run's side of the journal.
    pub fn log(self) -> &'a RunLog {
        &self.0.0.log
    }

    /// The way that events leave the run.
    pub fn emitter(self) -> &'a Emitter {
        &self.0.0.emitter
    }

    /// True if the run is to pause at its next boundary.
    pub fn pause_requested(self) -> bool {
        self.0.0.pause.is_requested()
    }

    /// The pause that the child runs share.
    pub fn pause_flag(self) -> &'a Pause {
        &self.0.0.pause
    }

    /// The messages that wait for the run's next model call.
    pub fn inbox(self) -> &'a Inbox {
        &self.0.0.inbox
    }

    /// Keeps the messages that steer the run in its journal from now on, and those that wait already.
    pub fn keep_steering(self) {
        self.inbox().keep_in(self.log().clone());
    }

    /// The run as the tool of its call `call_id` has it: what that changes in the state and the storage is kept with the
    /// call's result, and taken back if the call is cut off.
    #[must_use]
    pub fn of_call(self, call_id: &Arc<str>) -> RunCx {
        let run = &self.0.0;
        let storage = || CallStorage::new(&run.globals, &run.state);
        RunCx(run.clone(), Some(run.log.call_storage(call_id, storage)))
    }

    /// The questions of the call `call_id` that have no answer; none if a child run waits.
    pub fn asked_by(self, call_id: &str) -> Option<Vec<Question>> {
        let Some(pending) = self.0.pending_if_any() else { return Some(Vec::new()) };
        let waits = pending.children.contains_key(call_id);
        let asked = pending.asked.iter().filter(|question| id_within(&question.id, call_id).is_some());
        (!waits).then(|| asked.cloned().collect())
    }

    /// Records that these were asked when the call was made before.
    pub fn asked_before(self, questions: &[Question]) {
        let mut pending = self.0.pending();
        questions.iter().for_each(|question| pending.ask(question.clone()));
    }

    /// Counts against the run's budgets what steps used that are not made again.
    pub fn count_uncounted(self) {
        let used = self.log().take_uncounted();
        if used != Usage::default() {
            let used = Amounts::none().tokens(used.total()).cost(used.cost).model_calls(used.calls);
            self.0.budget().count_again(used);
        }
    }

    /// True if a task was [handed over](RunCx::spawn) that was not taken.
    pub fn has_tasks(self) -> bool {
        self.0.0.tasks.is_waiting()
    }

    /// Takes the tasks that were handed over, to drive them; the executor is woken when there are more.
    pub fn take_tasks(self, executor: &Context<'_>) -> Vec<BoxFuture<'static, ()>> {
        self.0.0.tasks.take(executor)
    }

    /// Drops the tasks that nobody took, and accepts no more. The run is over.
    pub fn close_tasks(self) {
        self.0.0.tasks.close();
    }
}
