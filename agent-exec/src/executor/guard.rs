//! What holds for everything that a run waits for: it ends with the run, and a panic is an error.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, RunCx};

use super::Due;

/// How long what is left to do may take when the run's time is up.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// What `work` gives, unless the run is cancelled or its time is up before it is done: then it is dropped. For work of the
/// loop itself, which is [polled](super::beside()) when either happens.
pub(super) async fn guarded<T>(cx: &RunCx, who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let cut_off = || match cx.cancellation().is_cancelled() {
        true => Some(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
        false => late(cx, Duration::ZERO),
    };
    watched(who, work, cut_off).await
}

/// As [`guarded`], for what is left to do when the run is over: it is done also if the run was cancelled, and has
/// [`GRACE`] when the run's time is up.
pub(super) async fn in_grace<T>(cx: &RunCx, who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    watched(who, work, || late(cx, GRACE)).await
}

/// What `work` gives; its panic is an error that names `who`.
pub(super) async fn caught<T>(who: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    watched(who, work, || None).await
}

/// The error of a run whose time was up so long ago.
fn late(cx: &RunCx, grace: Duration) -> Option<Error> {
    let due = Due::of_run(cx)?;
    due.has_passed(grace).then(|| due.error())
}

async fn watched<T>(
    who: &str,
    work: impl Future<Output = Result<T>>,
    cut_off: impl Fn() -> Option<Error>,
) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => cut_off().map_or(Poll::Pending, |e| Poll::Ready(Err(e))),
        Ok(done) => done,
        Err(panic) => Poll::Ready(Err(Error::from_panic(ErrorKind::Unexpected, who, &*panic))),
    })
    .await
}
