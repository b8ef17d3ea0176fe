//! Deadlines of the run and of the current step.

use std::time::Duration;

use agent_core::{Deadlines, Error, RunCx, run::DeadlineKind};
use tokio::time::{Instant, sleep_until};

/// A point in time at which running work is cut off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    most: Duration,
    which: DeadlineKind,
}

impl Deadline {
    /// Returns the deadline of a step that starts now.
    pub(super) fn of_step(deadlines: &Deadlines) -> Option<Self> {
        let most = deadlines.step?;
        Some(Self { at: Instant::now().checked_add(most)?, most, which: DeadlineKind::Step })
    }

    /// Returns the deadline of the run.
    pub(super) fn of_run(cx: &RunCx) -> Option<Self> {
        cx.deadline().map(|run| Self { at: run.at.into(), most: run.most, which: DeadlineKind::Run })
    }

    /// Returns the earlier of the run's and the step's deadline; the run's if they are equal.
    pub(super) fn first(cx: &RunCx, step: Option<Self>) -> Option<Self> {
        Self::of_run(cx).into_iter().chain(step).min_by_key(|deadline| deadline.at)
    }

    /// Returns the instant at which the deadline passes.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// True if the deadline passed at least `since` ago.
    pub(super) fn has_passed(&self, since: Duration) -> bool {
        Instant::now().checked_duration_since(self.at).is_some_and(|ago| ago >= since)
    }

    /// Waits until the deadline has passed; never completes without one.
    pub(super) async fn passed(deadline: Option<Self>) -> Self {
        match deadline {
            Some(deadline) => {
                sleep_until(deadline.at).await;
                deadline
            }
            None => std::future::pending().await,
        }
    }

    pub(super) fn error(&self) -> Error {
        let (most, what) = (self.most, if self.which == DeadlineKind::Step { "step" } else { "run" });
        self.which.passed(format!("the {what} took longer than {most:?}"), most)
    }

    /// Returns the message that the model receives for a call that was cut off.
    pub(super) fn message(&self) -> String {
        match self.which {
            DeadlineKind::Step => format!("The call was cut off: the step took longer than {:?}.", self.most),
            _ => format!("The call was cut off: the run's time of {:?} was up.", self.most),
        }
    }
}
