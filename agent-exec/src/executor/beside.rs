//! What runs beside the loop.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use agent_core::RunCx;
use tokio::task::JoinSet;
use tokio_util::sync::WaitForCancellationFuture;
use tracing::Instrument;

/// Drives `main`, and beside it what is handed to the run; the latter ends with the former, also if that is dropped. `main` is
/// polled when the run is cancelled.
///
/// `main` is pinned where it is: a future that is handed over has two places in the one that it is handed to.
pub(super) async fn beside<T>(cx: &RunCx, mut main: Pin<&mut impl Future<Output = T>>) -> T {
    let cancelled = pin!(cx.cancellation().cancelled());
    let mut tasks = Tasks { cx, known: None, cancelled, running: None };
    poll_fn(|context| {
        let done = main.as_mut().poll(context);
        if done.is_pending() {
            tasks.poll(context);
        }
        done
    })
    .await
}

struct Tasks<'a, 'b> {
    cx: &'a RunCx,
    /// Whom the run wakes when something is handed to it, or it is cancelled.
    known: Option<Waker>,
    /// Kept for the whole run, whose parts need only look.
    cancelled: Pin<&'b mut WaitForCancellationFuture<'a>>,
    /// Few runs have any.
    running: Option<JoinSet<()>>,
}

impl Tasks<'_, '_> {
    fn poll(&mut self, context: &mut Context<'_>) {
        let is_known = self.known.as_ref().is_some_and(|known| known.will_wake(context.waker()));
        if !is_known || self.cx.has_tasks() {
            self.known = Some(context.waker().clone());
            if self.cancelled.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref(); // since whoever looked last
            }
            for task in self.cx.take_tasks(context) {
                self.running.get_or_insert_default().spawn(task.in_current_span());
            }
        }
        if let Some(running) = &mut self.running {
            while let Poll::Ready(Some(_)) = running.poll_join_next(context) {}
        }
    }
}

impl Drop for Tasks<'_, '_> {
    fn drop(&mut self) {
        self.cx.close_tasks(); // the tasks know the run: left where they are, they would keep each other
    }
}
