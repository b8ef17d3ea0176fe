//! A queue, as those see it who look after it.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Job, Queue, RunAddress, Standing};
use crate::error::Result;

/// A queue, as those see it who look after it: what is in it, what was given up, and what is to come at which times.
#[async_trait]
pub trait Upkeep: Queue {
    /// The jobs that `wanted` asks for, the newest first.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn jobs(&self, wanted: &Wanted) -> Result<Vec<QueuedJob>>;

    /// Queues a job again that was given up or is at rest, as if it had never failed; false if there is no such job. Its run goes on where its journal says.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn retry(&self, run: &RunAddress) -> Result<bool>;

    /// Forgets a job that no worker has, or whose worker's lease ran out; false if there is no such job. What its run wrote stays in the journal.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn remove(&self, run: &RunAddress) -> Result<bool>;

    /// Forgets the jobs that were done longer ago than `age`; gives how many. A run id that is forgotten can be sent again: it then finds its run
    /// in the journal.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn purge(&self, age: Duration) -> Result<u64>;

    /// Sets a schedule, in place of one of the same name. Its times count from now; if they are those of the one before, they count on, so that what is due
    /// is not lost.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if its times cannot be read; [`ErrorKind::Store`](crate::ErrorKind::Store) if the
    /// queue failed.
    async fn set_schedule(&self, schedule: &Schedule) -> Result<()>;

    /// Removes a schedule; false if there is none of this name. Jobs that it made stay.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn remove_schedule(&self, name: &str) -> Result<bool>;

    /// The schedules by name, each with when it is due next: milliseconds since 1970, UTC.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the queue failed.
    async fn schedules(&self) -> Result<Vec<(Schedule, u64)>>;
}

/// Which jobs are meant. Default: the newest hundred of all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Those that stand so, whatever else the standing says. Default: all.
    pub standing: Option<StandingKind>,
    /// Those of this tenant. Default: all.
    pub tenant: Option<String>,
    /// Those of these agents. Default: all.
    pub agents: Option<Vec<String>>,
    /// Those of this session. Default: all.
    pub session: Option<String>,
    /// Those of this run. Default: all.
    pub run: Option<String>,
    /// No more than these. Default: 100.
    pub most: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { standing: None, tenant: None, agents: None, session: None, run: None, most: 100 }
    }
}

impl Wanted {
    /// Asks for those alone that stand so.
    #[must_use]
    pub fn standing(mut self, standing: StandingKind) -> Self {
        self.standing = Some(standing);
        self
    }

    /// Asks for those of a tenant alone.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Asks for those of these agents alone.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.agents = Some(agents.into_iter().map(Into::into).collect());
        self
    }

    /// Asks for those of a session alone, by its name in the store.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Asks for those of a run alone, by its id.
    #[must_use]
    pub fn run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// Asks for no more than these.
    #[must_use]
    pub fn most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }
}

/// A [`Standing`] without what else it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StandingKind {
    /// [`Standing::Queued`].
    Queued,
    /// [`Standing::Running`].
    Running,
    /// [`Standing::AtRest`].
    AtRest,
    /// [`Standing::Dead`].
    Dead,
    /// [`Standing::Done`].
    Done,
}

impl StandingKind {
    /// All of them.
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
    /// The run.
    pub job: Job,
    /// Where it stands.
    pub standing: Standing,
    /// How often it failed, or its worker died, since it last rested.
    pub failures: u32,
    /// What failed the last time, or why its last answers were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it may run, if it is queued: milliseconds since 1970, UTC.
    pub ready_at: u64,
    /// When it came: milliseconds since 1970, UTC.
    pub created: u64,
    /// When it last changed: milliseconds since 1970, UTC.
    pub changed: u64,
}

impl QueuedJob {
    /// A job that came now and may run.
    pub fn new(job: Job, standing: Standing, now: u64) -> Self {
        Self { job, standing, failures: 0, error: None, ready_at: now, created: now, changed: now }
    }
}

/// Makes jobs at certain times.
///
/// Each job's run has an id of the schedule's name and the time, so that no time makes two. A time makes its job while any worker lives, however many runs the
/// workers have. Of the times that were missed, since no worker was there or the queue was full, the first is made up for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// Its times as cron says them, in UTC: minute, hour, day of the month, month, day of the week; six fields begin with the second.
    pub cron: String,
    /// What it sends; run id and time are filled in. Jobs that name no session of their own get one each.
    pub job: Job,
}

impl Schedule {
    /// Sends `job` at the times of `cron`.
    ///
    /// ```
    /// use agent_core::{RunRequest, dispatch::{Job, Schedule}};
    ///
    /// let report = Job::new("reporter", &RunRequest::user("Write the report of yesterday."))?;
    /// let mornings = Schedule::new("morning report", "0 6 * * MON-FRI", report);
    /// assert_eq!(mornings.job_at("2026-11-26T06:00:00Z").at.run.as_ref(), "morning report@2026-11-26T06:00:00Z");
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn new(name: impl Into<String>, cron: impl Into<String>, job: Job) -> Self {
        Self { name: name.into(), cron: cron.into(), job }
    }

    /// The job of a time, which is given in words.
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
