//! What holds for everything that a run waits for: it ends with the run, and a panic is an error.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use agent_core::{Error, ErrorKind, Result, RunCx};

use super::{Deadline, caught};

/// How long what is left to do may take when the run's time is up.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// What `work` gives, unless the run is cancelled or its time is up before it is done: then it is dropped. Its panic is an
/// error that names `who`. For work of the loop itself, which is [polled](super::with_background_tasks()) when either happens.
pub(super) async fn guarded<T>(cx: &RunCx, who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let cut_off = || match cx.cancellation().is_cancelled() {
        true => Some(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
        false => late(cx, Duration::ZERO),
    };
    caught(who, pin!(unless(cut_off, work))).await
}

/// What `work` gives, unless [`GRACE`] has passed since the run's time was up: for what is left to do then, and also when the
/// run was cancelled.
pub(super) async fn in_grace<T>(cx: &RunCx, work: impl Future<Output = Result<T>>) -> Result<T> {
    unless(|| late(cx, GRACE), work).await
}

/// The error of a run whose time was up so long ago.
fn late(cx: &RunCx, grace: Duration) -> Option<Error> {
    let deadline = Deadline::of_run(cx)?;
    deadline.has_passed(grace).then(|| deadline.error())
}

/// What `work` gives, unless it has to wait and is to be cut off.
async fn unless<T>(cut_off: impl Fn() -> Option<Error>, work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => cut_off().map_or(Poll::Pending, |e| Poll::Ready(Err(e))),
        done @ Poll::Ready(_) => done,
    })
    .await
}
