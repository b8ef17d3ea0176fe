//! Cooperative yields.

use std::{future::poll_fn, task::Poll};

/// Lets whatever else is ready run first.
///
/// A run that never has to wait (its answers are scripted or cached, its tools work in memory) would otherwise keep its thread
/// from the first step to the last. And where thousands of runs share a thread, those that are ready do the same phase one
/// after another, with its code and the server's attention warm. tokio's `yield_now` would look for events first, which
/// costs a run that is alone a system call.
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
