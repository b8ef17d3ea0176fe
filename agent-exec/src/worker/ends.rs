//! Outcome of a job whose run has ended or could not start.

use std::time::Duration;

use agent_core::{Checkpoint, Error, ErrorKind, Result, Retry, RunEnd, model::Backoff};
use agent_dispatch::Outcome;

use super::begin::ends_after;

/// Delay before a job is retried whose session is in use.
const BUSY: Duration = Duration::from_millis(500);

/// Context in which a run ended.
pub(super) struct End<'a> {
    pub(super) backoff: &'a Backoff,
    /// Number of earlier failures of the job.
    pub(super) failures: u32,
    /// True if the run stopped because the worker shuts down, rather than by a signal.
    pub(super) drains: bool,
    /// Reason why some of its answers were refused.
    pub(super) note: Option<String>,
}

impl End<'_> {
    pub(super) fn outcome(&self, end: &Result<RunEnd>) -> Outcome {
        match end {
            Ok(RunEnd::Finished(_)) => Outcome::Done,
            Ok(RunEnd::Interrupted(stands)) => rests(stands, self.note.clone()),
            Ok(_) if self.drains => Outcome::Later { after: Duration::ZERO, error: None },
            Ok(RunEnd::Paused(_)) => Outcome::AtRest { after: None, note: None },
            Ok(_) => Outcome::Done,
            Err(e) => self.failed(e),
        }
    }

    pub(super) fn failed(&self, e: &Error) -> Outcome {
        let error = e.to_string();
        match (e.kind(), e.checkpoint()) {
            // Retry without delay: a question may have expired since the worker checked the
            // answers. The next attempt leaves that answer out and keeps the others.
            (ErrorKind::AnswerRefused, Some(_)) if self.failures == 0 && self.backoff.delay(1, None).is_some() => {
                Outcome::Later { after: Duration::ZERO, error: Some(error) }
            }
            // The run is still waiting, as if the answers had not been given.
            (ErrorKind::AnswerRefused, Some(stands)) => rests(stands, Some(error)),
            // Another process holds the session, or died with it. A waiting run needs its answers
            // first.
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
