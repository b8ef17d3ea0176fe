//! Workers over a queue, on a clock that tests control.

mod ends;
mod hand_over;
mod hooks;
mod leases;
mod signals;
mod troubled;

use std::{future::pending, sync::Arc, time::Duration};

use agent_core::{
    Journal, MemoryJournal, RunRequest,
    journal::EntryBody,
    model::Backoff,
    testing::{ScriptedModel, Turn},
};
use agent_dispatch::{
    Dispatch, Dispatched, Job, JobStatus, JobStatusKind, Queue, QueueAdmin, QueuedJob, RunAddress, Wanted,
};
use agent_exec::{Agent, AgentBuilder, Worker, WorkerBuilder};
use agent_store::MemoryQueue;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

/// The queue and the journal that all processes share.
#[derive(Clone, Default)]
struct Shared {
    queue: MemoryQueue,
    journal: MemoryJournal,
}

impl Shared {
    /// Builds an agent that belongs to one process.
    fn agent(&self, turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
        Agent::builder("a", ScriptedModel::new(turns)).store(self.journal.clone())
    }

    fn worker(&self, agent: AgentBuilder) -> WorkerBuilder {
        self.worker_of(Arc::new(self.queue.clone()), agent)
    }

    /// Builds a worker with another view of the queue.
    fn worker_of(&self, queue: Arc<dyn Queue>, agent: AgentBuilder) -> WorkerBuilder {
        let backoff = Backoff::new().retries(2).jitter(0.0);
        Worker::builder(queue).agent(agent.build().expect("builds")).attempts(backoff)
    }

    /// Starts a process that works until it is aborted, which simulates its death.
    fn start(&self, worker: WorkerBuilder) -> JoinHandle<()> {
        let worker = worker.build().expect("builds");
        tokio::spawn(async move {
            worker.run_until(pending()).await;
        })
    }

    fn process(&self, agent: AgentBuilder) -> JoinHandle<()> {
        self.start(self.worker(agent))
    }

    async fn send(&self, job: Job) -> RunAddress {
        let at = job.at.clone();
        assert_eq!(self.queue.dispatch(job).await.expect("takes it"), Dispatched::New);
        at
    }

    async fn shown(&self, run: &RunAddress) -> QueuedJob {
        let jobs = self.queue.jobs(&Wanted::default()).await.expect("lists");
        jobs.into_iter().find(|job| job.job.at == *run).expect("it is there")
    }

    /// Waits until the run has this status.
    async fn comes_to(&self, run: &RunAddress, kind: JobStatusKind) -> JobStatus {
        let began = Instant::now();
        loop {
            let standing = self.queue.standing(run).await.expect("reads").expect("it is known");
            if standing.kind() == kind {
                return standing;
            }
            assert!(began.elapsed() < Duration::from_secs(3_600), "it is {standing:?}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns the number of the session's journal entries of one kind.
    async fn count(&self, session: &str, is_one: impl Fn(&EntryBody) -> bool) -> usize {
        let entries = self.journal.read(session, 0, usize::MAX).await.expect("reads");
        entries.iter().filter(|entry| is_one(&entry.body)).count()
    }
}

fn job(run: &str) -> Job {
    Job::new("a", &RunRequest::user("go").session("s").run_id(run)).expect("it is data")
}
