//! Guards around everything that a run waits for: the wait ends with the run, and panics become
//! errors.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use agent_core::{Error, ErrorKind, Result, RunCx};
use tokio::time::{Instant, sleep_until};

use super::{Deadline, caught};

/// Time that the remaining work may take after the run was cancelled or its deadline has passed.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Returns the result of `work`, or drops `work` if the run is cancelled or its deadline passes
/// first. A panic becomes an error that names `who`. For work of the loop itself, which is
/// [polled](super::with_background_tasks()) in both cases.
pub(super) async fn guarded<T>(cx: &RunCx, who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let cut_off = || match cx.cancellation().is_cancelled() {
        true => Some(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
        false => late(cx),
    };
    caught(who, pin!(unless(cut_off, work))).await
}

/// Time limit of the remaining work once the run was cancelled or its deadline has passed.
pub(super) struct Grace<'a> {
    cx: &'a RunCx,
    /// End of the grace after a cancellation.
    cancelled: Option<Instant>,
}

impl<'a> Grace<'a> {
    pub(super) fn new(cx: &'a RunCx) -> Self {
        Self { cx, cancelled: None }
    }

    /// Returns the result of `work`, unless [`GRACE`] has passed since the run's deadline, or since
    /// the first such work of a run that was cancelled.
    pub(super) async fn limit<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            done = work => done,
            late = self.over() => Err(late),
        }
    }

    async fn over(&mut self) -> Error {
        let deadline = Deadline::of_run(self.cx);
        let late = async {
            match &deadline {
                Some(deadline) => sleep_until(deadline.at() + GRACE).await,
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            self.cx.cancellation().cancelled().await;
            let until = *self.cancelled.get_or_insert_with(|| Instant::now() + GRACE);
            sleep_until(until).await;
        };
        tokio::select! {
            () = late => deadline.as_ref().map_or_else(was_cancelled, Deadline::error),
            () = cancelled => was_cancelled(),
        }
    }
}

fn was_cancelled() -> Error {
    let message = format!("the run was cancelled, and the work that was left took longer than {GRACE:?}");
    Error::new(ErrorKind::Cancelled, message)
}

/// Returns the error of a run whose deadline has passed.
fn late(cx: &RunCx) -> Option<Error> {
    let deadline = Deadline::of_run(cx)?;
    deadline.has_passed(Duration::ZERO).then(|| deadline.error())
}

/// Returns the result of `work`, unless it is pending and `cut_off` returns an error.
async fn unless<T>(cut_off: impl Fn() -> Option<Error>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => cut_off().map_or(Poll::Pending, |e| Poll::Ready(Err(e))),
        done @ Poll::Ready(_) => done,
    })
    .await
}
