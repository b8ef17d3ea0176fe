//! [`EngineCx`]: the executor's view of a run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Context,
};

use futures::future::BoxFuture;

use super::{Hook, Inbox, Pause, RunCx, Scope};
use crate::{
    amounts::Amounts,
    event::Emitter,
    log::RunLog,
    state::{Question, id_within},
    storage::CallStorage,
    usage::Usage,
};

/// Capability of one executor to open its runs.
///
/// Hooks, layers and tools have a [`RunCx`], which gives no access to the run's journal. The
/// executor's services have the same, and in addition the key that the executor set in
/// [`RunParts::key`](crate::engine::RunParts::key).
///
/// ```
/// use agent_core::{ModelRequest, engine::EngineKey};
///
/// /// Attempt nonce, as the executor's innermost service reads it.
/// fn attempt(key: EngineKey, request: &ModelRequest) -> Option<&str> {
///     key.open(&request.cx).map(|run| &**run.log().attempt())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineKey(u64);

impl EngineKey {
    /// Creates a unique key.
    #[expect(clippy::new_without_default, reason = "two of them are never equal")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens a run that has this key.
    pub fn open(self, cx: &RunCx) -> Option<EngineCx<'_>> {
        (cx.0.key == Some(self)).then_some(EngineCx(cx))
    }
}

/// The executor's view of a run, obtained from its [`RunDriver`](crate::engine::RunDriver), or with
/// its [`EngineKey`], which also opens descendants.
#[derive(Clone, Copy, Debug)]
pub struct EngineCx<'a>(pub(crate) &'a RunCx);

impl<'a> EngineCx<'a> {
    /// The run's interface to its journal and its engine.
    pub fn log(self) -> &'a RunLog {
        &self.0.0.log
    }

    /// The emitter of the run's events.
    pub fn emitter(self) -> &'a Emitter {
        &self.0.0.emitter
    }

    /// True if the run must pause at its next boundary.
    pub fn pause_requested(self) -> bool {
        self.0.0.pause.is_requested()
    }

    /// The pause request that the child runs share.
    pub fn pause_flag(self) -> &'a Pause {
        &self.0.0.pause
    }

    /// The messages that are pending for the next model call.
    pub fn inbox(self) -> &'a Inbox {
        &self.0.0.inbox
    }

    /// Records steering messages in the run's journal from now on, including those already pending.
    pub fn keep_steering(self) {
        self.inbox().keep_in(self.log().clone());
    }

    /// Returns the run as the tool of the call `call_id` sees it: the tool's changes of the state
    /// and the storage are persisted with the call's result, and rolled back if the call is
    /// aborted.
    #[must_use]
    pub fn of_call(self, call_id: &Arc<str>) -> RunCx {
        let run = &self.0.0;
        let storage = || CallStorage::new(&run.globals, &run.state);
        let storage = run.log.call_storage(call_id, storage);
        RunCx(run.clone(), Scope::Call { id: call_id.clone(), storage }, self.0.2)
    }

    /// True within a model call, of this run or of one above it, for which a budget reserved.
    pub fn is_in_reserved_call(self) -> bool {
        self.0.is_in_reserved_call()
    }

    /// The run as a hook of the middleware at the position `at` of the stack has it: what that
    /// starts and decides is its own.
    #[must_use]
    pub fn in_hook(self, hook: Hook, at: usize) -> RunCx {
        self.0.in_hook(hook, at, None)
    }

    /// The unanswered questions of the call `call_id`; `None` if the call waits for a child run.
    pub fn asked_by(self, call_id: &str) -> Option<Vec<Question>> {
        let Some(pending) = self.0.pending_if_any() else { return Some(Vec::new()) };
        let waits = pending.waits(call_id);
        let asked = pending.asked.iter().filter(|question| id_within(&question.id, call_id).is_some());
        (!waits).then(|| asked.cloned().collect())
    }

    /// Records that these questions were asked when the call was made before.
    pub fn asked_before(self, questions: &[Question]) {
        let mut pending = self.0.pending();
        questions.iter().for_each(|question| pending.ask(question.clone()));
    }

    /// Counts the usage of steps that were read back instead of executed against the run's budgets.
    pub fn count_uncounted(self) {
        let used = self.log().take_uncounted();
        if used != Usage::default() {
            let used = Amounts::none().tokens(used.total()).cost(used.cost).model_calls(used.calls);
            self.0.budget().count_again(used);
        }
    }

    /// True if a [spawned](RunCx::spawn) task has not been taken.
    pub fn has_tasks(self) -> bool {
        self.0.0.tasks.is_waiting()
    }

    /// Takes the spawned tasks, to drive them. The executor is woken when more are spawned.
    pub fn take_tasks(self, executor: &Context<'_>) -> Vec<BoxFuture<'static, ()>> {
        self.0.0.tasks.take(executor)
    }

    /// Drops the tasks that were not taken, and rejects further ones. Called when the run has
    /// ended.
    pub fn close_tasks(self) {
        self.0.0.tasks.close();
    }
}
