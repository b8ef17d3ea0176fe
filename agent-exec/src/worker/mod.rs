//! [`Worker`]: runs what a queue has.

mod begin;
mod builder;
mod ends;
mod hooks;
mod life;
mod relay;
mod shift;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use agent_core::{Event, Result, RunRequest, model::Backoff};
use agent_dispatch::{ChunkRelay, Claim, Job, Queue, RunAddress};
use futures::Stream;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::shift::{WorkerState, keep};
pub use self::{builder::WorkerBuilder, hooks::WorkerHooks};
use crate::{Agent, Drained};

/// Time that finished runs have to release their jobs when the worker shuts down.
const GRACE: Duration = Duration::from_secs(5);

/// Takes runs from a [`Queue`] and drives them, up to a maximum number concurrently.
///
/// Its agents store their runs in the journal that all workers share. When a worker dies, another
/// one claims its runs once their leases expire, and resumes them from the journal: completed work
/// is not repeated, and calls with an unknown outcome are asked about. A run that waits for an
/// answer or is paused is released and uses no resources; it is claimed again when its answer
/// arrives.
///
/// If a run fails with a temporary error or an error of the store, it is retried after a delay, as
/// often as [`attempts`](WorkerBuilder::attempts) allows. Otherwise it stays in the queue as a dead
/// letter, to be inspected and retried; a retry resumes the run where it failed. A run whose
/// session is in use waits until it is free, which does not count as a failure.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::{MemoryJournal, RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_dispatch::{Dispatch, Job, JobStatus};
/// use agent_exec::{Agent, Worker};
/// use agent_store::MemoryQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agent_core::Error> {
/// let agent = Agent::builder("greeter", ScriptedModel::new([Turn::text("Hello!")])).store(MemoryJournal::default()).build()?;
/// let queue = Arc::new(MemoryQueue::new());
/// let job = Job::new("greeter", &RunRequest::user("Hi"))?;
/// let run = job.at.clone();
/// queue.dispatch(job).await?;
///
/// let worker = Worker::builder(queue.clone()).agent(agent).at_once(8).build()?;
/// let done = async {
///     while queue.standing(&run).await.ok().flatten() != Some(JobStatus::Done) {
///         tokio::task::yield_now().await;
///     }
/// };
/// worker.run_until(done).await; // in an application: until agent_exec::shutdown_signal()
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

/// Adapts the request of a job before it runs.
type Shape = Arc<dyn Fn(&Job, RunRequest) -> Result<RunRequest> + Send + Sync>;

struct Inner {
    agents: HashMap<Arc<str>, Agent>,
    queue: Arc<dyn Queue>,
    claim: Claim,
    at_once: usize,
    poll: Duration,
    drain_within: Duration,
    backoff: Backoff,
    shape: Shape,
    relay: Option<Arc<dyn ChunkRelay>>,
    hooks: Arc<dyn WorkerHooks>,
}

impl Worker {
    /// Returns a builder for a worker of this queue.
    pub fn builder(queue: Arc<dyn Queue>) -> WorkerBuilder {
        WorkerBuilder::new(queue)
    }

    /// Returns the worker's name.
    pub fn name(&self) -> &str {
        &self.0.claim.worker
    }

    /// Publishes the events of a run through a relay while somebody watches it, until the events
    /// end. Consecutive chunks within the relay's [interval](ChunkRelay::interval) are merged. A
    /// viewer that comes in the middle of a message receives its chunks from the beginning.
    ///
    /// A worker does this for its runs; other execution backends call it beside each run, with
    /// [`RunHandle::events`](crate::RunHandle::events) from before the run starts.
    ///
    /// # Cancellation safety
    /// Dropping the future loses events that are not published yet, and nothing else.
    pub async fn relay_events(relay: &dyn ChunkRelay, run: &RunAddress, events: impl Stream<Item = Event> + Unpin) {
        relay::relay_events(relay, run, events).await;
    }

    /// Processes jobs until `shutdown` completes. Then it claims no more, pauses the active runs at
    /// their next boundary, cancels those that do not reach it in time, and returns all of them to
    /// the queue for other workers. Returns the counts by outcome.
    ///
    /// Errors of the queue are logged and retried.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Drained {
        let shift = Arc::new(WorkerState::new(self.0.clone()));
        let mut keeper = JoinSet::new(); // aborted when this future is dropped
        drop(keeper.spawn(keep(shift.clone())));
        let (ends, mut runs) = (CancellationToken::new(), JoinSet::new());
        let drains = async {
            shutdown.await;
            ends.cancel();
            // A pending claim delays no run: a job that it returns goes back to the queue.
            shift.drain(self.0.drain_within).await
        };
        let (drained, ()) = tokio::join!(drains, self.work(&shift, &mut runs, &ends));
        let _ = timeout(GRACE, async { while runs.join_next().await.is_some() {} }).await;
        runs.shutdown().await;
        keeper.abort_all();
        drained
    }

    /// Keeps as many runs active as the queue and the concurrency limit allow.
    async fn work(&self, shift: &Arc<WorkerState>, runs: &mut JoinSet<()>, ends: &CancellationToken) {
        let mut seen = 0;
        while !ends.is_cancelled() {
            let is_full = shift.fill(runs, ends).await;
            tokio::select! {
                biased;
                () = ends.cancelled() => {}
                Some(_) = runs.join_next() => {}
                news = self.0.queue.news(seen), if !is_full => seen = news,
                () = sleep(self.0.poll), if !is_full => {}
            }
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("claim", &self.0.claim).field("at_once", &self.0.at_once).finish_non_exhaustive()
    }
}
