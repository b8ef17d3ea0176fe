//! A job in a queue, and the only ways in which it changes: the same in every queue.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    Answer, Error, ErrorKind, Result,
    dispatch::{Claim, Claimed, Job, Outcome, QueuedJob, RunAddress, Signal, Standing, StandingKind},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::depth::reads_back;

/// A job in a queue. Times are milliseconds since 1970, UTC, by the queue's clock.
///
/// What was changed says when it was: each transition is given the time.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) job: Job,
    pub(crate) standing: StandingKind,
    pub(crate) ready_at: u64,
    pub(crate) failures: u32,
    /// True since a worker first had it: a run may stand in the journal.
    pub(crate) begun: bool,
    /// True since a worker gave it back whose run stands in the journal.
    pub(crate) stands: bool,
    pub(crate) receipt: Option<u64>,
    pub(crate) worker: String,
    pub(crate) expires: u64,
    /// What came since it was claimed.
    pub(crate) answers: Option<BTreeMap<String, Answer>>,
    /// What the worker was given that has it, or that died with it.
    pub(crate) taken: Option<BTreeMap<String, Answer>>,
    pub(crate) error: Option<String>,
    pub(crate) created: u64,
    pub(crate) changed: u64,
}

/// A time that does not come, and that every database can hold.
const NEVER: u64 = u64::MAX >> 1;

/// What becomes of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nobody is there to be told.
    No,
    /// The job itself changed, and that was all.
    ByJob,
    /// It is kept for the run.
    ForRun,
}

impl Record {
    pub(crate) fn new(job: Job, now: u64) -> Self {
        Self {
            standing: StandingKind::Queued,
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

    /// Gives it to a worker.
    pub(crate) fn claim(&mut self, receipt: u64, by: &Claim, now: u64) -> Claimed {
        self.leave(StandingKind::Running, now);
        self.begun = true;
        (self.receipt, self.expires) = (Some(receipt), later(now, by.lease));
        by.worker.clone_into(&mut self.worker);
        self.taken = merged(self.taken.take(), self.answers.take());
        let mut claimed = Claimed::new(receipt, self.job.clone());
        claimed.answers.clone_from(&self.taken);
        (claimed.failures, claimed.error, claimed.stands) = (self.failures, self.error.clone(), self.stands);
        claimed
    }

    /// True if nobody is to be waited for any more: its worker did not say that it lives, or what it rests for has ended.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        match self.standing {
            StandingKind::Running => self.expires <= now,
            StandingKind::AtRest => self.ready_at <= now,
            _ => false,
        }
    }

    /// Queues one that [is due](Self::is_due).
    pub(crate) fn wake(&mut self, now: u64) {
        if self.standing == StandingKind::Running {
            self.failures += 1;
            self.error = Some(format!("worker '{}' was not heard of in time", self.worker));
        }
        self.requeue(Duration::ZERO, now);
    }

    /// Its worker gives it back, and its run may stand in the journal. If it was cancelled and its run has not heard it, it does not rest.
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
                self.leave(StandingKind::Dead, now);
            }
            // Whatever a newer release of the contract says, the worker is done with it.
            _ => {
                (self.answers, self.taken, self.error) = (None, None, None);
                self.leave(StandingKind::Done, now);
            }
        }
    }

    /// Takes answers for its run.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] if it waits for nothing.
    pub(crate) fn answer(&mut self, answers: BTreeMap<String, Answer>, now: u64) -> Result<()> {
        let waits = match self.standing {
            StandingKind::Queued => self.begun,
            StandingKind::Running | StandingKind::AtRest => true,
            _ => false,
        };
        if !waits {
            return Err(waits_for_nothing(&self.job.at));
        }
        (self.answers, self.changed) = (merged(self.answers.take(), Some(answers)), now);
        if self.standing == StandingKind::AtRest {
            self.requeue(Duration::ZERO, now);
        }
        Ok(())
    }

    /// Tells its run, or the job itself where no run has begun. One that was cancelled already, and whose run has not heard it, does not rest.
    pub(crate) fn signal(&mut self, signal: &Signal, is_cancelled: bool, now: u64) -> Taken {
        match (self.standing, signal) {
            (StandingKind::Queued | StandingKind::AtRest, Signal::Cancel) if !self.begun => {
                self.error = Some("it was cancelled before it began".to_owned());
                self.leave(StandingKind::Done, now);
                Taken::ByJob
            }
            // A run that waits ends where its journal is written: with a worker.
            (StandingKind::AtRest, Signal::Cancel) => {
                self.requeue(Duration::ZERO, now);
                Taken::ForRun
            }
            (StandingKind::Queued, Signal::Pause) if !is_cancelled => {
                self.rest(None, now);
                Taken::ByJob
            }
            // One that was given up stays so: its run is told if somebody retries it.
            (StandingKind::Dead, Signal::Cancel) => Taken::ForRun,
            (StandingKind::Running | StandingKind::Queued, _) => Taken::ForRun,
            _ => Taken::No,
        }
    }

    /// True if a signal that no run has heard is still of use where the job stands. A run that rests is stopped, and hears a message when it goes on;
    /// one that was given up is retried, and then ends if it was to.
    pub(crate) fn keeps(&self, signal: &Signal) -> bool {
        match self.standing {
            StandingKind::Queued | StandingKind::Running => true,
            StandingKind::Dead => matches!(signal, Signal::Steer(_) | Signal::Cancel),
            StandingKind::AtRest => matches!(signal, Signal::Steer(_)),
            _ => false,
        }
    }

    /// Queues it as if it had never failed; false if that means nothing where it stands.
    pub(crate) fn retry(&mut self, now: u64) -> bool {
        let stands = matches!(self.standing, StandingKind::Dead | StandingKind::AtRest);
        if stands {
            self.failures = 0;
            self.requeue(Duration::ZERO, now);
        }
        stands
    }

    fn requeue(&mut self, after: Duration, now: u64) {
        self.leave(StandingKind::Queued, now);
        // One that never began waits for its time, whatever it was told meanwhile.
        let not_before = self.job.not_before.filter(|_| !self.begun).map_or(0, |at| at.min(NEVER));
        self.ready_at = later(now, after).max(not_before);
    }

    fn rest(&mut self, after: Option<Duration>, now: u64) {
        self.leave(StandingKind::AtRest, now);
        self.ready_at = after.map_or(NEVER, |after| later(now, after));
    }

    fn leave(&mut self, standing: StandingKind, now: u64) {
        (self.standing, self.receipt, self.expires, self.changed) = (standing, None, 0, now);
        self.worker.clear();
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.standing {
            StandingKind::Queued => Standing::Queued,
            StandingKind::Running => Standing::Running { worker: self.worker.clone() },
            StandingKind::AtRest => Standing::AtRest,
            StandingKind::Dead => Standing::Dead { error: self.error.clone().unwrap_or_default() },
            _ => Standing::Done,
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

/// True if a run is to end of which these signals were not heard.
pub(crate) fn cancels<'a>(unheard: impl IntoIterator<Item = &'a Signal>) -> bool {
    unheard.into_iter().any(|signal| *signal == Signal::Cancel)
}

/// JSON text of what is sent.
///
/// # Errors
/// [`ErrorKind::Store`] if it could not be read back: that is known now, while whoever sends it can still be told.
pub(crate) fn written<T: Serialize + DeserializeOwned>(sent: &T) -> Result<String> {
    let unwritable = |e| Error::new(ErrorKind::Store, "what was sent cannot be written as JSON").with_source(e);
    let too_deep =
        |e| Error::new(ErrorKind::Store, "what was sent is nested too deeply to be read back").with_source(e);
    let text = serde_json::to_string(sent).map_err(unwritable)?;
    reads_back(&text, |text| serde_json::from_str::<T>(text)).map_err(too_deep)?;
    Ok(text)
}

pub(crate) fn waits_for_nothing(run: &RunAddress) -> Error {
    let message = format!("run '{}' waits for nothing: look where it stands, or send a new one", run.run);
    Error::new(ErrorKind::Stale, message)
}

/// Later answers go over earlier ones.
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
