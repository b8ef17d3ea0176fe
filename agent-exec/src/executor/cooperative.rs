//! Cooperative yields.

use std::{future::poll_fn, task::Poll};

/// Yields once, so that other ready tasks can run.
///
/// A run that never waits (its answers are scripted or cached, its tools work in memory) would
/// otherwise occupy its thread from the first step to the last. Where thousands of runs share a
/// thread, yielding also makes ready runs execute the same phase one after another, with warm
/// caches. tokio's `yield_now` polls for I/O events first, which costs a lone run a system call.
pub(super) async fn yield_now() {
    let mut gave = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
