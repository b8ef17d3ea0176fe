//! The worker's interface to a queue.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{Dispatch, Job, Signal};
use agent_core::{Answer, Result};

/// A queue of runs, as workers use it; senders use it as a [`Dispatch`].
///
/// A worker that claimed a job holds a lease on it and renews the lease. A job whose lease expired
/// returns to the queue, and its former holder cannot change it any more: its receipt has become
/// invalid. Time is measured by the queue's clock.
///
/// Order of jobs: tenants alternate; within a tenant, higher priorities run first, then in order of
/// arrival. Only one job of a session and agent is claimed at a time, and an earlier job that is
/// ready, or has begun, precedes a later one.
#[async_trait]
pub trait Queue: Dispatch {
    /// Claims the next job that is ready; `None` if there is no such job.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed; a job that was claimed
    /// nevertheless returns when its lease expires.
    async fn claim(&self, by: &Claim) -> Result<Option<Claimed>>;

    /// Extends leases to `lease` from now. Returns the receipts that are still valid: the other
    /// jobs belong to other workers by now.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn renew(&self, receipts: &[u64], lease: Duration) -> Result<Vec<u64>>;

    /// Releases a job with its outcome, the ids of the signals that its run consumed (`heard`), and
    /// whether its run was journalled (`stands`). Returns `false`, and changes nothing, if the
    /// lease was lost. A job with an unconsumed cancellation is not suspended; if it is
    /// dead-lettered, its run receives the cancellation when it is retried. Unconsumed messages are
    /// kept until the run continues, unless the job is done.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn release(&self, receipt: u64, outcome: Outcome, heard: &[u64], stands: bool) -> Result<bool>;

    /// Enqueues the due jobs of [schedules](crate::Schedule). Every worker calls this regularly,
    /// even without free capacity, so that no time is missed while one worker lives.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn fire(&self) -> Result<()>;

    /// Returns the signals of these jobs that were not [deleted](Self::forget), oldest first. A
    /// signal is kept until a worker whose run consumed it releases the job, so that it survives
    /// workers and attempts.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn signals(&self, receipts: &[u64]) -> Result<Vec<Told>>;

    /// Deletes signals by their ids, because the run has them in its journal.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn forget(&self, signals: &[u64]) -> Result<()>;

    /// Waits until there may be a job or a signal for a worker. Returns a number to pass as `since`
    /// the next time, so that changes in between are not missed; begin with 0. Workers must also
    /// poll now and then: an expired lease causes no notification.
    async fn news(&self, since: u64) -> u64;
}

/// Request of a worker for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// Name of the worker.
    pub worker: String,
    /// Names of the worker's agents.
    pub agents: Vec<Arc<str>>,
    /// Duration of the lease, unless it is renewed.
    pub lease: Duration,
}

impl Claim {
    /// Creates the request of a worker with these agents.
    pub fn new(worker: impl Into<String>, agents: impl IntoIterator<Item = Arc<str>>, lease: Duration) -> Self {
        Self { worker: worker.into(), agents: agents.into_iter().collect(), lease }
    }
}

/// A job claimed by a worker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Claimed {
    /// Lease token of this claim; unique.
    pub receipt: u64,
    /// The job to run.
    pub job: Job,
    /// Answers that no run has taken so far; `None` without answers. Includes those that an
    /// earlier worker had when it died.
    pub answers: Option<BTreeMap<String, Answer>>,
    /// Number of failures, including deaths of its worker, since the job was last suspended.
    pub failures: u32,
    /// Error of the last failure.
    pub error: Option<String>,
    /// True if a worker released the job and reported that its run was journalled: if the run is
    /// not in the journal any more, it was deleted and must not begin again. After the death of a
    /// worker, it is unknown whether the run was journalled.
    pub stands: bool,
}

impl Claimed {
    /// Creates the claim of a job that was not claimed before.
    pub fn new(receipt: u64, job: Job) -> Self {
        Self { receipt, job, answers: None, failures: 0, error: None, stands: false }
    }
}

/// Outcome with which a worker releases a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The run has ended.
    Done,
    /// The run waits for an answer, or was paused. If an answer has arrived meanwhile, the job is
    /// queued again.
    AtRest {
        /// Time after which the job resumes by itself, because its question expires. Default:
        /// never.
        after: Option<Duration>,
        /// Note about the job, such as the reason why its last answers were refused.
        note: Option<String>,
    },
    /// The job must run again.
    Later {
        /// Delay before it runs again.
        after: Duration,
        /// Error, if there was one; `None`, for example, when the worker shuts down.
        error: Option<String>,
    },
    /// The job is dead-lettered until it is [retried](crate::QueueAdmin::retry).
    Dead {
        /// Reason.
        error: String,
    },
}

/// A signal for a claimed job.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Told {
    /// Id of the signal.
    pub id: u64,
    /// Receipt of the job.
    pub receipt: u64,
    /// The signal.
    pub signal: Signal,
}

impl Told {
    /// Creates a signal for the job with this receipt.
    pub fn new(id: u64, receipt: u64, signal: Signal) -> Self {
        Self { id, receipt, signal }
    }
}
