//! What becomes of a job when its run has ended, or could not begin.

use std::time::Duration;

use agent_core::{Checkpoint, Error, ErrorKind, Result, Retry, RunEnd, dispatch::Outcome, model::Backoff};

use super::begin::ends_after;

/// How long a session in use is left alone.
const BUSY: Duration = Duration::from_millis(500);

/// How the worker came to the end of a run.
pub(super) struct End<'a> {
    pub(super) backoff: &'a Backoff,
    /// How often the job failed before.
    pub(super) failures: u32,
    /// True if it stopped since the worker shuts down, and not since it was told to.
    pub(super) drains: bool,
    /// Why some of its answers were refused.
    pub(super) note: Option<String>,
}

impl End<'_> {
    pub(super) fn outcome(&self, end: Result<RunEnd>) -> Outcome {
        match end {
            Ok(RunEnd::Finished(_)) => Outcome::Done,
            Ok(RunEnd::Interrupted(stands)) => rests(&stands, self.note.clone()),
            Ok(_) if self.drains => Outcome::Later { after: Duration::ZERO, error: None },
            Ok(RunEnd::Paused(_)) => Outcome::AtRest { after: None, note: None },
            Ok(_) => Outcome::Done,
            Err(e) => self.failed(&e),
        }
    }

    pub(super) fn failed(&self, e: &Error) -> Outcome {
        let error = e.to_string();
        match (e.kind(), e.checkpoint()) {
            // Perhaps one of them alone: the question may have ended since the worker looked. It is left out the next time, and the others are not.
            (ErrorKind::AnswerRefused, Some(_)) if self.failures == 0 && self.backoff.delay(1, None).is_some() => {
                Outcome::Later { after: Duration::ZERO, error: Some(error) }
            }
            // It still waits, as if they had not been given.
            (ErrorKind::AnswerRefused, Some(stands)) => rests(stands, Some(error)),
            // Another process has the session, or died with it. One that waits for answers is not free before it has them.
            (ErrorKind::Busy, None) => Outcome::Later { after: BUSY, error: None },
            (ErrorKind::Cancelled, _) if self.drains => Outcome::Later { after: Duration::ZERO, error: None },
            (ErrorKind::Cancelled, _) => Outcome::Done,
            (ErrorKind::Store | ErrorKind::Stale, _) => self.again(None, error),
            _ => match e.retry() {
                Retry::Temporary(asked) => self.again(asked, error),
                _ => Outcome::Dead { error },
            },
        }
    }

    fn again(&self, asked: Option<Duration>, error: String) -> Outcome {
        match self.backoff.delay(self.failures + 1, asked) {
            Some(after) => Outcome::Later { after, error: Some(error) },
            None => Outcome::Dead { error },
        }
    }
}

fn rests(stands: &Checkpoint, note: Option<String>) -> Outcome {
    Outcome::AtRest { after: ends_after(stands), note }
}
