//! Job record and its transitions, shared by all queues.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{Answer, Error, ErrorKind, Result};
use agent_dispatch::{Claim, Claimed, Job, JobStatus, JobStatusKind, Outcome, QueuedJob, RunAddress, Signal};
use serde::{Serialize, de::DeserializeOwned};

use crate::depth::reads_back;

/// Job record. Times are milliseconds since 1970, UTC, by the queue's clock.
///
/// Each transition takes the current time and updates `changed`.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) job: Job,
    pub(crate) standing: JobStatusKind,
    pub(crate) ready_at: u64,
    pub(crate) failures: u32,
    /// True once a worker has claimed the job: the journal may contain its run.
    pub(crate) begun: bool,
    /// True once a worker has released the job with its run in the journal.
    pub(crate) stands: bool,
    pub(crate) receipt: Option<u64>,
    pub(crate) worker: String,
    pub(crate) expires: u64,
    /// Answers that arrived since the last claim.
    pub(crate) answers: Option<BTreeMap<String, Answer>>,
    /// Answers that were handed to the current worker, or to one that died with the job.
    pub(crate) taken: Option<BTreeMap<String, Answer>>,
    pub(crate) error: Option<String>,
    pub(crate) created: u64,
    pub(crate) changed: u64,
}

/// A time that is never reached and that every database can store.
const NEVER: u64 = u64::MAX >> 1;

/// Effect of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The run cannot receive the signal.
    No,
    /// The job itself changed; the signal need not be stored.
    ByJob,
    /// The signal is stored for the run.
    ForRun,
}

impl Record {
    pub(crate) fn new(job: Job, now: u64) -> Self {
        Self {
            standing: JobStatusKind::Queued,
            ready_at: job.not_before.unwrap_or(now).min(NEVER),
            failures: 0,
            begun: false,
            stands: false,
            receipt: None,
            worker: String::new(),
            expires: 0,
            answers: None,
            taken: None,
            error: None,
            created: now,
            changed: now,
            job,
        }
    }

    /// Leases the job to a worker.
    pub(crate) fn claim(&mut self, receipt: u64, by: &Claim, now: u64) -> Claimed {
        self.leave(JobStatusKind::Running, now);
        self.begun = true;
        (self.receipt, self.expires) = (Some(receipt), later(now, by.lease));
        by.worker.clone_into(&mut self.worker);
        self.taken = merged(self.taken.take(), self.answers.take());
        let mut claimed = Claimed::new(receipt, self.job.clone());
        claimed.answers.clone_from(&self.taken);
        (claimed.failures, claimed.error, claimed.stands) = (self.failures, self.error.clone(), self.stands);
        claimed
    }

    /// True if the lease has expired, or the time limit of a suspended job's wait has passed.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        match self.standing {
            JobStatusKind::Running => self.expires <= now,
            JobStatusKind::AtRest => self.ready_at <= now,
            _ => false,
        }
    }

    /// Requeues a job that [is due](Self::is_due).
    pub(crate) fn wake(&mut self, now: u64) {
        if self.standing == JobStatusKind::Running {
            self.failures += 1;
            self.error = Some(format!("the lease of worker '{}' expired", self.worker));
        }
        self.requeue(Duration::ZERO, now);
    }

    /// Releases the job with an outcome; `stands` says that the journal may contain its run. A job
    /// that was cancelled by a signal that its run has not consumed is not suspended.
    pub(crate) fn release(&mut self, outcome: Outcome, stands: bool, is_cancelled: bool, now: u64) {
        self.stands |= stands;
        match outcome {
            Outcome::Later { after, error } => {
                self.requeue(after, now);
                self.failures += u32::from(error.is_some());
                self.error = error.or(self.error.take());
            }
            Outcome::AtRest { after, note } => {
                (self.taken, self.failures, self.error) = (None, 0, note);
                match is_cancelled || self.answers.is_some() {
                    true => self.requeue(Duration::ZERO, now),
                    false => self.rest(after, now),
                }
            }
            Outcome::Dead { error } => {
                self.error = Some(error);
                self.leave(JobStatusKind::Dead, now);
            }
            // An outcome that this release does not know: the worker has finished with the job.
            _ => {
                (self.answers, self.taken, self.error) = (None, None, None);
                self.leave(JobStatusKind::Done, now);
            }
        }
    }

    /// Stores answers for the run.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] if the run waits for no answers.
    pub(crate) fn answer(&mut self, answers: BTreeMap<String, Answer>, now: u64) -> Result<()> {
        let waits = match self.standing {
            JobStatusKind::Queued => self.begun,
            JobStatusKind::Running | JobStatusKind::AtRest => true,
            _ => false,
        };
        if !waits {
            return Err(waits_for_nothing(&self.job.at));
        }
        (self.answers, self.changed) = (merged(self.answers.take(), Some(answers)), now);
        if self.standing == JobStatusKind::AtRest {
            self.requeue(Duration::ZERO, now);
        }
        Ok(())
    }

    /// Applies a signal to the run, or to the job itself if no run has begun. A job with a pending
    /// cancellation cannot be paused.
    pub(crate) fn signal(&mut self, signal: &Signal, is_cancelled: bool, now: u64) -> Taken {
        match (self.standing, signal) {
            (JobStatusKind::Queued | JobStatusKind::AtRest, Signal::Cancel) if !self.begun => {
                self.error = Some("cancelled before it began".to_owned());
                self.leave(JobStatusKind::Done, now);
                Taken::ByJob
            }
            // Only a worker can write the end of a suspended run to the journal.
            (JobStatusKind::AtRest, Signal::Cancel) => {
                self.requeue(Duration::ZERO, now);
                Taken::ForRun
            }
            (JobStatusKind::Queued, Signal::Pause) if !is_cancelled => {
                self.rest(None, now);
                Taken::ByJob
            }
            // A dead job stays dead: the run receives the signal if the job is retried.
            (JobStatusKind::Dead, Signal::Cancel) => Taken::ForRun,
            (JobStatusKind::Running | JobStatusKind::Queued, _) => Taken::ForRun,
            _ => Taken::No,
        }
    }

    /// True if a pending signal is still useful in the job's current status. A suspended run
    /// receives messages when it resumes; a dead job may be retried and then ends if it was
    /// cancelled.
    pub(crate) fn keeps(&self, signal: &Signal) -> bool {
        match self.standing {
            JobStatusKind::Queued | JobStatusKind::Running => true,
            JobStatusKind::Dead => matches!(signal, Signal::Steer(_) | Signal::Cancel),
            JobStatusKind::AtRest => matches!(signal, Signal::Steer(_)),
            _ => false,
        }
    }

    /// Requeues a dead or suspended job without failures. Returns `false` in any other status.
    pub(crate) fn retry(&mut self, now: u64) -> bool {
        let stands = matches!(self.standing, JobStatusKind::Dead | JobStatusKind::AtRest);
        if stands {
            self.failures = 0;
            self.requeue(Duration::ZERO, now);
        }
        stands
    }

    fn requeue(&mut self, after: Duration, now: u64) {
        self.leave(JobStatusKind::Queued, now);
        // A job that never began still waits for its scheduled time.
        let not_before = self.job.not_before.filter(|_| !self.begun).map_or(0, |at| at.min(NEVER));
        self.ready_at = later(now, after).max(not_before);
    }

    fn rest(&mut self, after: Option<Duration>, now: u64) {
        self.leave(JobStatusKind::AtRest, now);
        self.ready_at = after.map_or(NEVER, |after| later(now, after));
    }

    fn leave(&mut self, standing: JobStatusKind, now: u64) {
        (self.standing, self.receipt, self.expires, self.changed) = (standing, None, 0, now);
        self.worker.clear();
    }

    pub(crate) fn standing(&self) -> JobStatus {
        match self.standing {
            JobStatusKind::Queued => JobStatus::Queued,
            JobStatusKind::Running => JobStatus::Running { worker: self.worker.clone() },
            JobStatusKind::AtRest => JobStatus::AtRest,
            JobStatusKind::Dead => JobStatus::Dead { error: self.error.clone().unwrap_or_default() },
            _ => JobStatus::Done,
        }
    }

    pub(crate) fn shown(&self) -> QueuedJob {
        let mut shown = QueuedJob::new(self.job.clone(), self.standing(), self.ready_at);
        (shown.failures, shown.error) = (self.failures, self.error.clone());
        (shown.created, shown.changed) = (self.created, self.changed);
        shown
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn later(now: u64, after: Duration) -> u64 {
    now.saturating_add(millis(after)).min(NEVER)
}

/// True if the pending signals include a cancellation.
pub(crate) fn cancels<'a>(unheard: impl IntoIterator<Item = &'a Signal>) -> bool {
    unheard.into_iter().any(|signal| *signal == Signal::Cancel)
}

/// Encodes a value as JSON text.
///
/// # Errors
/// [`ErrorKind::Store`] if the text could not be read back. Checked here, while the sender can
/// still be notified.
pub(crate) fn written<T: Serialize + DeserializeOwned>(sent: &T) -> Result<String> {
    let unwritable = |e| Error::new(ErrorKind::Store, "the job or signal cannot be encoded as JSON").with_source(e);
    let too_deep =
        |e| Error::new(ErrorKind::Store, "the job or signal is nested too deeply to be read back").with_source(e);
    let text = serde_json::to_string(sent).map_err(unwritable)?;
    reads_back(&text, |text| serde_json::from_str::<T>(text)).map_err(too_deep)?;
    Ok(text)
}

pub(crate) fn waits_for_nothing(run: &RunAddress) -> Error {
    let message = format!("run '{}' is not waiting: check its status, or start a new run", run.run);
    Error::new(ErrorKind::Stale, message)
}

/// Merges answers; later ones override earlier ones.
fn merged(
    before: Option<BTreeMap<String, Answer>>,
    since: Option<BTreeMap<String, Answer>>,
) -> Option<BTreeMap<String, Answer>> {
    match (before, since) {
        (Some(mut before), Some(since)) => {
            before.extend(since);
            Some(before)
        }
        (before, since) => before.or(since),
    }
}
