//! [`Worker`]: runs what a queue has.

mod begin;
mod builder;
mod ends;
mod life;
mod shift;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use agent_core::{
    Result, RunRequest,
    dispatch::{Claim, Job, Queue},
    model::Backoff,
};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::builder::WorkerBuilder;
use self::shift::{Shift, keep};
use crate::{Agent, Drained};

/// How long runs that are over have to say so to the queue when the worker shuts down.
const GRACE: Duration = Duration::from_secs(5);

/// Takes runs out of a [`Queue`] and runs them, so many at once.
///
/// Its agents keep their runs in the journal that all workers share. A run that a worker died with is claimed by another one when its lease has run out, and
/// goes on where the journal says that it stands: what was done is not done again, and calls whose end is not known are asked about. A run that waits for an
/// answer, or was paused, is given back and holds nothing; it is claimed again when its answer came.
///
/// What becomes of a run that fails: if the error is temporary, or the store's, it is run again after a while, as often as
/// [`attempts`](WorkerBuilder::attempts) says. Otherwise it is given up: it stays in the queue as a dead letter, to be looked at and retried, which goes on
/// where it failed. A run that finds its session in use waits until it is free, which is no failure.
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::{MemoryJournal, RunRequest, dispatch::{Dispatch, Job, Standing}, testing::{ScriptedModel, Turn}};
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
///     while queue.standing(&run).await.ok().flatten() != Some(Standing::Done) {
///         tokio::task::yield_now().await;
///     }
/// };
/// worker.run_until(done).await; // in an application: until agent_exec::shutdown_signal()
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Worker(Arc<Inner>);

/// Makes of a job's request what is run.
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
}

impl Worker {
    /// Begins a worker of this queue.
    pub fn builder(queue: Arc<dyn Queue>) -> WorkerBuilder {
        WorkerBuilder::new(queue)
    }

    /// As the worker calls itself.
    pub fn name(&self) -> &str {
        &self.0.claim.worker
    }

    /// Works until `shutdown` is ready. Then it claims no more, pauses the runs under way at their next boundary, cancels those that do not reach it
    /// in time, and puts all of them back for other workers. Gives what became of them.
    ///
    /// A queue that fails is asked again; what it says is logged.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Drained {
        let shift = Arc::new(Shift::new(self.0.clone()));
        let mut keeper = JoinSet::new(); // it ends when this future is dropped
        drop(keeper.spawn(keep(shift.clone())));
        let (ends, mut runs) = (CancellationToken::new(), JoinSet::new());
        let drains = async {
            shutdown.await;
            ends.cancel();
            // A claim that is waited for is in no run's way: what it brings is put back.
            shift.drain(self.0.drain_within).await
        };
        let (drained, ()) = tokio::join!(drains, self.work(&shift, &mut runs, &ends));
        let _ = timeout(GRACE, async { while runs.join_next().await.is_some() {} }).await;
        runs.shutdown().await;
        keeper.abort_all();
        drained
    }

    /// Has as many runs under way as there are, and as there is room for.
    async fn work(&self, shift: &Arc<Shift>, runs: &mut JoinSet<()>, ends: &CancellationToken) {
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
