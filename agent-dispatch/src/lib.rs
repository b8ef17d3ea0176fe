//! Dispatch of runs to other processes: the [`Job`] to dispatch, the [`Dispatch`] trait for
//! senders, and the [`Queue`] trait for workers.
//!
//! A front end (a server, a schedule, a program) creates jobs; a queue with workers, or a
//! distributed engine, runs them. Both sides share the agents' names and the session's
//! [`Journal`](agent_core::Journal), from which any process can read a run's progress.
//!
//! ```
//! use agent_core::RunRequest;
//! use agent_dispatch::Job;
//!
//! let request = RunRequest::user("A-17 came broken.").session("garden").run_id("r1");
//! let job = Job::new("support", &request)?.priority(5);
//! let sent = serde_json::to_string(&job).expect("a job is data");
//! let taken: Job = serde_json::from_str(&sent).expect("and comes back");
//! assert_eq!(taken.request().run_id.as_deref(), Some("r1"));
//! # Ok::<(), agent_core::Error>(())
//! ```

mod job;
mod queue;
mod relay;
mod upkeep;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use self::{
    job::Job,
    queue::{Claim, Claimed, Outcome, Queue, Told},
    relay::{ChunkRelay, MemoryRelay, RelayBatch, RelayItem},
    upkeep::{JobStatusKind, QueueAdmin, QueuedJob, Schedule, Wanted},
};
use agent_core::{Answer, Message, Result};

/// Dispatches runs, to be executed in this process or another.
///
/// The effect of a method is durable when the method returns: it survives the calling process and
/// the one that runs.
#[async_trait]
pub trait Dispatch: Send + Sync + 'static {
    /// Dispatches a run. Idempotent: the run id is the idempotency key.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for an agent that no worker has, if that is
    /// known; [`ErrorKind::RateLimited`](agent_core::ErrorKind::RateLimited) if no more jobs are
    /// accepted now; [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the job could not be
    /// persisted.
    async fn dispatch(&self, job: Job) -> Result<Dispatched>;

    /// Resumes a suspended run with answers by question id; without answers, it continues from
    /// where it stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`](agent_core::ErrorKind::Stale) if the run is not suspended;
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store).
    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()>;

    /// Sends a signal to a queued or running run. Returns `false` if the run is neither. A
    /// suspended run accepts only a cancellation, and so does a dead-lettered run, which ends when
    /// it is retried.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the signal could not be persisted.
    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool>;

    /// Returns the job status of a run, which the journal does not contain; `None` if the job is
    /// unknown here.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the status could not be read.
    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>>;
}

/// Address of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunAddress {
    /// Name of the agent.
    pub agent: Arc<str>,
    /// Session of the run, as the store names it.
    pub session: Arc<str>,
    /// Id of the run.
    pub run: Arc<str>,
}

impl RunAddress {
    /// Creates the address of the run `run` of `agent` in `session`.
    pub fn new(agent: impl Into<Arc<str>>, session: impl Into<Arc<str>>, run: impl Into<Arc<str>>) -> Self {
        Self { agent: agent.into(), session: session.into(), run: run.into() }
    }
}

/// Outcome of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dispatched {
    /// The job is new.
    New,
    /// The job was dispatched before.
    Known,
}

/// Signal to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// Cancel the run and its descendants.
    Cancel,
    /// Pause the run before its next step.
    Pause,
    /// Insert this message before the run's next model call.
    Steer(Message),
}

/// Status of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobStatus {
    /// Waiting in the queue.
    Queued,
    /// Running in a process.
    Running {
        /// Name of the worker.
        worker: String,
    },
    /// Suspended: waiting for an answer, or stopped; no process runs it.
    AtRest,
    /// Dead-lettered: the run failed, or its process died, as often as allowed.
    Dead {
        /// Error of the last attempt.
        error: String,
    },
    /// Finished.
    Done,
}

impl JobStatus {
    /// The status without its data.
    pub fn kind(&self) -> JobStatusKind {
        match self {
            Self::Queued => JobStatusKind::Queued,
            Self::Running { .. } => JobStatusKind::Running,
            Self::AtRest => JobStatusKind::AtRest,
            Self::Dead { .. } => JobStatusKind::Dead,
            Self::Done => JobStatusKind::Done,
        }
    }
}
