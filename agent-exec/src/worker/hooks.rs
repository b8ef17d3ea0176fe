//! [`WorkerHooks`]: observation of runs by the process around a worker.

use std::sync::Arc;

use agent_core::{Event, Result, RunEnd, RunRequest, async_trait};
use agent_dispatch::Job;

use crate::{Agent, RunHandle};

/// Hooks of the process that a [`Worker`](crate::Worker) runs in, such as a server that shows the
/// runs. All methods have defaults that change nothing.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use agent_dispatch::Job;
/// use agent_exec::{RunHandle, WorkerHooks};
///
/// #[derive(Default)]
/// struct Started(AtomicUsize);
///
/// impl WorkerHooks for Started {
///     fn run_started(&self, _: &Job, _: &RunHandle) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
#[async_trait]
pub trait WorkerHooks: Send + Sync + 'static {
    /// Returns the agent that executes the job; `own` is the worker's agent of this name. Default:
    /// `own`.
    ///
    /// # Errors
    /// An error moves the job to the dead letters, unless it is temporary.
    async fn agent(&self, job: &Job, own: &Agent) -> Result<Agent> {
        let _ = job;
        Ok(own.clone())
    }

    /// Adapts the request of a job before it runs, after
    /// [`WorkerBuilder::shape`](crate::WorkerBuilder::shape). `agent` executes it.
    ///
    /// # Errors
    /// An error moves the job to the dead letters, unless it is temporary.
    fn request(&self, job: &Job, agent: &Agent, request: RunRequest) -> Result<RunRequest> {
        let _ = (job, agent);
        Ok(request)
    }

    /// Called each time that the queue has answered: a claim, a renewal of leases, or a request for
    /// signals. A worker asks its queue at least once per
    /// [`WorkerBuilder::poll`](crate::WorkerBuilder::poll).
    fn queue_answered(&self) {}

    /// Called when an attempt at the job's run starts, before its first step.
    fn run_started(&self, job: &Job, run: &RunHandle) {
        let _ = (job, run);
    }

    /// Called with the attempt's first durable event. The run takes no further step until this
    /// returns.
    async fn run_begun(&self, job: &Job, first: &Event) {
        let _ = (job, first);
    }

    /// Called when the attempt has ended, or could not start, before the worker releases the job.
    /// If the attempt was dropped, because the lease was lost or the worker was stopped,
    /// [`run_dropped`](Self::run_dropped) is called instead.
    async fn run_ended(&self, job: &Job, end: Arc<Result<RunEnd>>) {
        let _ = (job, end);
    }

    /// Called when a started attempt was dropped before its end: another worker may continue the
    /// run.
    fn run_dropped(&self, job: &Job) {
        let _ = job;
    }
}

/// A started attempt. Reports that it was dropped, unless it has ended.
pub(super) struct Started<'a> {
    hooks: &'a dyn WorkerHooks,
    job: &'a Job,
    has_ended: bool,
}

impl<'a> Started<'a> {
    pub(super) fn new(hooks: &'a dyn WorkerHooks, job: &'a Job, run: &RunHandle) -> Self {
        hooks.run_started(job, run);
        Self { hooks, job, has_ended: false }
    }

    pub(super) fn ended(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.hooks.run_dropped(self.job);
        }
    }
}

/// Hooks that change nothing.
pub(super) struct NoHooks;

impl WorkerHooks for NoHooks {}
