//! Guards around everything that a run waits for: the wait ends with the run, and panics become
//! errors.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use agent_core::{Error, ErrorKind, Result, RunCx};

use super::{Deadline, caught};

/// Time that the remaining work may take after the run's deadline has passed.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Returns the result of `work`, or drops `work` if the run is cancelled or its deadline passes
/// first. A panic becomes an error that names `who`. For work of the loop itself, which is
/// [polled](super::with_background_tasks()) in both cases.
pub(super) async fn guarded<T>(cx: &RunCx, who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let cut_off = || match cx.cancellation().is_cancelled() {
        true => Some(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
        false => late(cx, Duration::ZERO),
    };
    caught(who, pin!(unless(cut_off, work))).await
}

/// Returns the result of `work`, unless [`GRACE`] has passed since the run's deadline. For the
/// remaining work after the deadline or after a cancellation.
pub(super) async fn in_grace<T>(cx: &RunCx, work: impl Future<Output = Result<T>>) -> Result<T> {
    unless(|| late(cx, GRACE), work).await
}

/// Returns the error of a run whose deadline passed at least `grace` ago.
fn late(cx: &RunCx, grace: Duration) -> Option<Error> {
    let deadline = Deadline::of_run(cx)?;
    deadline.has_passed(grace).then(|| deadline.error())
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
