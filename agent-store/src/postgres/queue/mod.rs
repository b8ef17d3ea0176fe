//! Job queue shared by processes on several machines: [`PostgresQueue`].

mod builder;
mod claims;
mod listen;
mod row;
mod sending;
mod statements;
mod upkeep;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use agent_core::{Answer, Result, async_trait};
use agent_dispatch::{
    Claim, Claimed, Dispatch, Dispatched, Job, JobStatus, Outcome, Queue, QueueAdmin, QueuedJob, RunAddress, Schedule,
    Signal, Told, Wanted,
};

pub use self::builder::PostgresQueueBuilder;
use self::statements::Statements;
use super::connections::Connections;
use crate::queue::{News, QueueLimits, Times};

/// Ends a transaction with an error of our own.
macro_rules! ours {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(e) => return Ok(Err(e)),
        }
    };
}
use ours;

/// Job queue in a PostgreSQL database, for workers on several machines. Cheap to clone; clones
/// share one queue.
///
/// Any process can send jobs and any worker can run them. The job of a dead worker is detected by
/// its expired lease, by the server's clock. Claims are serialised across all workers, so that fair
/// scheduling and limits hold on all machines together: a claim takes a few round trips, which is
/// little beside a run of an agent. An idle worker takes no locks, and a worker that dies during a
/// claim blocks others for a third of its lease: at least one second, and at most ten.
///
/// `LISTEN` wakes workers, over a connection of its own. It needs a session: switch it
/// [off](PostgresQueueBuilder::listen) behind a pooler in transaction mode; workers then poll at
/// their interval. Everything else works behind a pooler as it does for the
/// [journal](crate::PostgresJournal#poolers).
///
/// Requirements and encryption are those of a [`PostgresJournal`](crate::PostgresJournal), and both
/// can share a database: the queue has a schema of its own. It can be read at any time with
/// `psql -c 'select * from agent_queue.jobs'`.
///
/// ```no_run
/// use agent_core::RunRequest;
/// use agent_dispatch::{Dispatch, Job};
/// use agent_store::PostgresQueue;
///
/// # async fn example() -> Result<(), agent_core::Error> {
/// let queue = PostgresQueue::connect("postgres://agent@localhost/agents").await?;
/// queue.dispatch(Job::new("helper", &RunRequest::user("hello"))?.tenant("acme")).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct PostgresQueue(Arc<Inner>);

struct Inner {
    schema: String,
    limits: QueueLimits,
    connections: Connections<Statements>,
    news: News,
}

impl PostgresQueue {
    /// Connects to the database at `url`, with the defaults of [`PostgresQueueBuilder`].
    ///
    /// # Errors
    /// The errors of [`PostgresQueueBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder(url).connect().await
    }

    /// Returns a builder for a queue at `url`.
    pub fn builder(url: &str) -> PostgresQueueBuilder {
        PostgresQueueBuilder::new(url)
    }
}

/// Runs work of this queue in a transaction. Clones its arguments, since a transaction may be
/// retried.
macro_rules! transaction {
    ($queue:expr, $kind:ident, $work:path $(, $given:ident)*) => {
        $queue.0.connections.$kind(move |client, statements| Box::pin($work(client, statements $(, $given.clone())*))).await
    };
}

#[async_trait]
impl Dispatch for PostgresQueue {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        let (job, limits) = (Arc::new(job), self.0.limits.clone());
        transaction!(self, write_again, sending::dispatch, job, limits)
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        let run = run.clone();
        transaction!(self, write_again, sending::answer, run, answers)
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        let run = run.clone();
        transaction!(self, write, sending::signal, run, signal)
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        let run = run.clone();
        transaction!(self, read, sending::standing, run)
    }
}

#[async_trait]
impl Queue for PostgresQueue {
    async fn claim(&self, by: &Claim) -> Result<Option<Claimed>> {
        let (by, limits) = (by.clone(), self.0.limits.clone());
        transaction!(self, write, claims::claim, by, limits)
    }

    async fn renew(&self, receipts: &[u64], lease: Duration) -> Result<Vec<u64>> {
        let receipts = receipts.to_vec();
        transaction!(self, write_again, claims::renew, receipts, lease)
    }

    async fn release(&self, receipt: u64, outcome: Outcome, heard: &[u64], stands: bool) -> Result<bool> {
        let heard = heard.to_vec();
        transaction!(self, write, claims::release, receipt, outcome, heard, stands)
    }

    async fn fire(&self) -> Result<()> {
        let limits = self.0.limits.clone();
        transaction!(self, write, claims::fire, limits)
    }

    async fn signals(&self, receipts: &[u64]) -> Result<Vec<Told>> {
        let receipts = receipts.to_vec();
        transaction!(self, read, claims::signals, receipts)
    }

    async fn forget(&self, signals: &[u64]) -> Result<()> {
        let signals = signals.to_vec();
        transaction!(self, write_again, claims::forget, signals)
    }

    async fn news(&self, since: u64) -> u64 {
        self.0.news.after(since).await
    }
}

#[async_trait]
impl QueueAdmin for PostgresQueue {
    async fn jobs(&self, wanted: &Wanted) -> Result<Vec<QueuedJob>> {
        let wanted = wanted.clone();
        transaction!(self, read, upkeep::jobs, wanted)
    }

    async fn retry(&self, run: &RunAddress) -> Result<bool> {
        let run = run.clone();
        transaction!(self, write, upkeep::retry, run)
    }

    async fn remove(&self, run: &RunAddress) -> Result<bool> {
        let run = run.clone();
        transaction!(self, write, upkeep::remove, run)
    }

    async fn purge(&self, age: Duration) -> Result<u64> {
        transaction!(self, write, upkeep::purge, age)
    }

    async fn set_schedule(&self, schedule: &Schedule) -> Result<()> {
        Times::of(schedule)?;
        let schedule = schedule.clone();
        transaction!(self, write_again, upkeep::set_schedule, schedule)
    }

    async fn remove_schedule(&self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        transaction!(self, write, upkeep::remove_schedule, name)
    }

    async fn schedules(&self) -> Result<Vec<(Schedule, u64)>> {
        transaction!(self, read, upkeep::schedules)
    }
}

impl fmt::Debug for PostgresQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresQueue")
            .field("schema", &self.0.schema)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
