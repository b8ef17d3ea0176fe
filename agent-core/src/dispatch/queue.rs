//! A queue, as workers see it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{Dispatch, Job, Signal};
use crate::{error::Result, state::Answer};

/// A queue of runs, as workers see it; whoever sends runs sees it as a [`Dispatch`].
///
/// Whoever has claimed a job holds a lease on it and renews it. A job whose lease ran out goes back into the queue, and its old holder
/// changes nothing any more: its receipt is known to nobody. Time is the queue's own clock.
///
/// Which job is next: tenants take turns; within a tenant higher priorities go first, then the order of arrival. Of a session and agent
/// one job is out at a time, and an earlier one that could run, or has begun, goes before a later one.
#[async_trait]
pub trait Queue: Dispatch {
    /// Takes the job that is next among those that may run now; none if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed; a job that was taken all the same comes back when its lease runs
    /// out.
    async fn claim(&self, by: &Claim) -> Result<Option<Claimed>>;

    /// Extends leases by `lease` from now. Gives the receipts that are still good: the jobs of the others are somebody else's.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn renew(&self, receipts: &[u64], lease: Duration) -> Result<Vec<u64>>;

    /// Gives a job back, and says what becomes of it, which signals its run has heard, by their ids, and whether its run `stands` in the journal by now; false if
    /// the lease was lost: then nothing is changed. A job that was cancelled and whose run has not heard it does not rest; if it is given up, its run is told when it is retried. Messages that
    /// a run has not heard stay until the run goes on, unless it is done.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn release(&self, receipt: u64, outcome: Outcome, heard: &[u64], stands: bool) -> Result<bool>;

    /// Makes the jobs of [schedules](super::Schedule) that are due. Workers ask for it all the time, also those that have no room for one more run, so that no
    /// time is missed while one lives.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn fire(&self) -> Result<()>;

    /// What the runs of these jobs were told and was not [forgotten](Self::forget), oldest first. It stays until the job is given back by a worker whose run heard it,
    /// so that it survives workers and attempts.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn signals(&self, receipts: &[u64]) -> Result<Vec<Told>>;

    /// Forgets signals, by their ids: the run has them in its journal.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn forget(&self, signals: &[u64]) -> Result<()>;

    /// Waits until there may be something for a worker: a job, or a signal. Gives a number to ask with the next time, so that what comes in between
    /// is not missed; begin with 0. A worker asks the queue now and then all the same: nobody tells when a lease runs out.
    async fn news(&self, since: u64) -> u64;
}

/// Who asks for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// As the worker calls itself.
    pub worker: String,
    /// The agents that it has.
    pub agents: Vec<Arc<str>>,
    /// How long the job is its own unless it renews.
    pub lease: Duration,
}

impl Claim {
    /// A worker with these agents.
    pub fn new(worker: impl Into<String>, agents: impl IntoIterator<Item = Arc<str>>, lease: Duration) -> Self {
        Self { worker: worker.into(), agents: agents.into_iter().collect(), lease }
    }
}

/// A job that a worker has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Claimed {
    /// Names the claim. None is given twice.
    pub receipt: u64,
    /// The run.
    pub job: Job,
    /// Answers that came for it and that no run took so far; none if none came. Those that an earlier worker had when it died are among them.
    pub answers: Option<BTreeMap<String, Answer>>,
    /// How often it failed, or its worker died, since it last rested.
    pub failures: u32,
    /// What failed the last time.
    pub error: Option<String>,
    /// True if a worker gave it back and said that its run stands in the journal: if it does not any more, somebody deleted it, and it must not begin anew. Whether the
    /// run of a worker that died stands there, nobody said.
    pub stands: bool,
}

impl Claimed {
    /// A job that was never claimed before.
    pub fn new(receipt: u64, job: Job) -> Self {
        Self { receipt, job, answers: None, failures: 0, error: None, stands: false }
    }
}

/// What becomes of a job that its worker gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing more: its run is over.
    Done,
    /// It waits for an answer, or was paused. If an answer came meanwhile, it is queued again.
    AtRest {
        /// After which time it goes on by itself, since its question ends then; never if unset.
        after: Option<Duration>,
        /// What is to be known of it, such as why its last answers were refused.
        note: Option<String>,
    },
    /// It is to be run again.
    Later {
        /// After this time.
        after: Duration,
        /// What failed; none if nothing did, such as when the worker shuts down.
        error: Option<String>,
    },
    /// It is given up, until somebody [retries](super::Upkeep::retry) it.
    Dead {
        /// Why.
        error: String,
    },
}

/// A signal for a job that a worker has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Told {
    /// Names the signal.
    pub id: u64,
    /// Whose it is.
    pub receipt: u64,
    /// What the run is told.
    pub signal: Signal,
}

impl Told {
    /// A signal for the job with this receipt.
    pub fn new(id: u64, receipt: u64, signal: Signal) -> Self {
        Self { id, receipt, signal }
    }
}
