//! The administrator's interface to a queue.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Job, JobStatus, Queue, RunAddress};
use agent_core::Result;

/// Administration of a queue: lists jobs, retries dead letters, and manages schedules.
#[async_trait]
pub trait QueueAdmin: Queue {
    /// Returns the jobs that match `wanted`, newest first.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn jobs(&self, wanted: &Wanted) -> Result<Vec<QueuedJob>>;

    /// Queues a dead-lettered or suspended job again with a failure count of 0. Returns `false` if
    /// there is no such job. Its run resumes from its journal.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn retry(&self, run: &RunAddress) -> Result<bool>;

    /// Deletes a job that no worker holds, or whose lease has expired. Returns `false` if there is
    /// no such job. Journal entries of its run are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn remove(&self, run: &RunAddress) -> Result<bool>;

    /// Deletes the jobs that finished longer ago than `age`. Returns their number. A deleted run id
    /// can be dispatched again: it then finds its run in the journal.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn purge(&self, age: Duration) -> Result<u64>;

    /// Sets a schedule, replacing one of the same name. Its times count from now; if they equal
    /// those of the replaced schedule, they continue, so that a due time is not lost.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if its times cannot be parsed;
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn set_schedule(&self, schedule: &Schedule) -> Result<()>;

    /// Deletes a schedule. Returns `false` if there is no schedule of this name. Jobs that it
    /// created are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn remove_schedule(&self, name: &str) -> Result<bool>;

    /// Returns the schedules by name, each with its next due time in milliseconds since 1970, UTC.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the queue failed.
    async fn schedules(&self) -> Result<Vec<(Schedule, u64)>>;
}

/// Filter for jobs. Default: the newest hundred of all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Only jobs with this status, regardless of its data. Default: all.
    pub standing: Option<JobStatusKind>,
    /// Only jobs of this tenant. Default: all.
    pub tenant: Option<String>,
    /// Only jobs of these agents. Default: all.
    pub agents: Option<Vec<String>>,
    /// Only jobs of this session. Default: all.
    pub session: Option<String>,
    /// Only jobs of this run. Default: all.
    pub run: Option<String>,
    /// Maximum number of jobs. Default: 100.
    pub most: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { standing: None, tenant: None, agents: None, session: None, run: None, most: 100 }
    }
}

impl Wanted {
    /// Restricts to jobs with this status.
    #[must_use]
    pub fn standing(mut self, standing: JobStatusKind) -> Self {
        self.standing = Some(standing);
        self
    }

    /// Restricts to jobs of this tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Restricts to jobs of these agents.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Restricts to jobs of this session, by its name in the store.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Restricts to jobs of this run, by its id.
    #[must_use]
    pub fn run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Sets the maximum number of jobs.
    #[must_use]
    pub fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }
}

/// A [`JobStatus`] without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobStatusKind {
    /// [`JobStatus::Queued`].
    Queued,
    /// [`JobStatus::Running`].
    Running,
    /// [`JobStatus::AtRest`].
    AtRest,
    /// [`JobStatus::Dead`].
    Dead,
    /// [`JobStatus::Done`].
    Done,
}

impl JobStatusKind {
    /// All statuses.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::AtRest, Self::Dead, Self::Done];

    /// `queued`, `running`, `at_rest`, `dead` or `done`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::AtRest => "at_rest",
            Self::Dead => "dead",
            Self::Done => "done",
        }
    }
}

/// A job in a queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedJob {
    /// The job.
    pub job: Job,
    /// Status of the job.
    pub standing: JobStatus,
    /// Number of failures, including deaths of its worker, since the job was last suspended.
    pub failures: u32,
    /// Error of the last failure, or the reason why its last answers were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Earliest start if it is queued, in milliseconds since 1970, UTC.
    pub ready_at: u64,
    /// Creation time, in milliseconds since 1970, UTC.
    pub created: u64,
    /// Time of the last change, in milliseconds since 1970, UTC.
    pub changed: u64,
}

impl QueuedJob {
    /// Creates a job that is ready now.
    pub fn new(job: Job, standing: JobStatus, now: u64) -> Self {
        Self { job, standing, failures: 0, error: None, ready_at: now, created: now, changed: now }
    }
}

/// Enqueues jobs at recurring times.
///
/// The id of each job's run consists of the schedule's name and the time, so that no time creates
/// two jobs. A time creates its job while any worker lives, regardless of the workers' load. Of the
/// times that were missed, because no worker lived or the queue was full, only the first is made up
/// for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Schedule {
    /// Name of the schedule.
    pub name: String,
    /// Times as a cron expression, in UTC: minute, hour, day of month, month, day of week; with six
    /// fields, the first is the second.
    pub cron: String,
    /// Template of the jobs; run id and time are filled in. If it names no session, each job gets a
    /// new one.
    pub job: Job,
}

impl Schedule {
    /// Creates a schedule that dispatches `job` at the times of `cron`.
    ///
    /// ```
    /// use agent_core::RunRequest;
    /// use agent_dispatch::{Job, Schedule};
    ///
    /// let report = Job::new("reporter", &RunRequest::user("Write the report of yesterday."))?;
    /// let mornings = Schedule::new("morning report", "0 6 * * MON-FRI", report);
    /// assert_eq!(mornings.job_at("2026-11-26T06:00:00Z").at.run.as_ref(), "morning report@2026-11-26T06:00:00Z");
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn new(name: impl Into<String>, cron: impl Into<String>, job: Job) -> Self {
        Self { name: name.into(), cron: cron.into(), job }
    }

    /// Creates the job of one time, which is given as text.
    pub fn job_at(&self, time: &str) -> Job {
        let (mut job, run) = (self.job.clone(), std::sync::Arc::<str>::from(format!("{}@{time}", self.name)));
        if job.at.session == job.at.run {
            job.at.session = run.clone();
        }
        job.at.run = run;
        job.not_before = None;
        job
    }
}
