//! The deadlines that hold for what is under way.

use std::time::Duration;

use agent_core::{Deadlines, Error, RunCx, run::DeadlineKind};
use tokio::time::{Instant, sleep_until};

/// A moment at which what is under way is cut off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    most: Duration,
    which: DeadlineKind,
}

impl Deadline {
    /// That of a step that begins now.
    pub(super) fn of_step(deadlines: &Deadlines) -> Option<Self> {
        let most = deadlines.step?;
        Some(Self { at: Instant::now().checked_add(most)?, most, which: DeadlineKind::Step })
    }

    /// That of the run.
    pub(super) fn of_run(cx: &RunCx) -> Option<Self> {
        cx.deadline().map(|run| Self { at: run.at.into(), most: run.most, which: DeadlineKind::Run })
    }

    /// The first of the run's and its step's; the run's if they are one.
    pub(super) fn first(cx: &RunCx, step: Option<Self>) -> Option<Self> {
        Self::of_run(cx).into_iter().chain(step).min_by_key(|deadline| deadline.at)
    }

    /// When it passes.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// True if it passed at least so long ago.
    pub(super) fn has_passed(&self, since: Duration) -> bool {
        Instant::now().checked_duration_since(self.at).is_some_and(|ago| ago >= since)
    }

    /// Waits until it has passed; for ever if there is none.
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

    /// What the model is told of a call that was cut off.
    pub(super) fn message(&self) -> String {
        match self.which {
            DeadlineKind::Step => format!("The call was cut off: the step took longer than {:?}.", self.most),
            _ => format!("The call was cut off: the run's time of {:?} was up.", self.most),
        }
    }
}
