//! Background tasks of a run.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use agent_core::{Error, ErrorKind, EventKind, Result, RunCx};
use tokio::{
    task::{JoinError, JoinSet},
    time::{Sleep, sleep_until},
};
use tokio_util::sync::WaitForCancellationFuture;
use tracing::Instrument;

use super::Deadline;
use crate::engine::Opened;

/// Drives `main` together with the background tasks of the run. The tasks are aborted when `main`
/// completes or when this future is dropped. `main` is polled again when the run is cancelled and when
/// its deadline passes.
///
/// `main` is taken pinned: passing it by value would double its size in the caller's state machine.
pub(super) async fn with_background_tasks<T>(cx: &RunCx, mut main: Pin<&mut impl Future<Output = T>>) -> T {
    let cancelled = pin!(cx.cancellation().cancelled());
    let timer = Deadline::of_run(cx).map(|deadline| Box::pin(sleep_until(deadline.at())));
    let mut tasks = BackgroundTasks { cx, known: None, cancelled, timer, running: None };
    poll_fn(|context| {
        let done = main.as_mut().poll(context);
        if done.is_pending() {
            tasks.poll(context);
        }
        done
    })
    .await
}

/// Drives one call of the run `cx` in its own task, next to other calls.
pub(super) async fn beside_others<T>(cx: &RunCx, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    poll_fn(|context| {
        let done = call.as_mut().poll(context);
        if done.is_pending() {
            cx.engine().log().poll_idle(context);
        }
        done
    })
    .await
}

/// Waits for calls that run in their own tasks, and stops as soon as the journal has rejected an
/// entry of the run `cx`.
///
/// # Errors
/// The error with which the journal rejected the entry.
pub(super) async fn unless_refused<T>(cx: &RunCx, wait: impl Future<Output = T>) -> Result<T> {
    let (mut wait, log) = (pin!(wait), cx.engine().log());
    poll_fn(|context| {
        if let Poll::Ready(done) = wait.as_mut().poll(context) {
            return Poll::Ready(log.check().map(|()| done));
        }
        log.poll_idle(context);
        log.check().map_or_else(|e| Poll::Ready(Err(e)), |()| Poll::Pending)
    })
    .await
}

struct BackgroundTasks<'a, 'b> {
    cx: &'a RunCx,
    /// The waker that the run wakes when it receives a task or is cancelled.
    known: Option<Waker>,
    /// Created once per run; each poll only checks it.
    cancelled: Pin<&'b mut WaitForCancellationFuture<'a>>,
    /// Timer of the run's deadline, if it has one.
    timer: Option<Pin<Box<Sleep>>>,
    /// The spawned tasks; `None` until the first one, since few runs have any.
    running: Option<JoinSet<()>>,
}

impl BackgroundTasks<'_, '_> {
    fn poll(&mut self, context: &mut Context<'_>) {
        self.cx.engine().log().poll_idle(context);
        let is_known = self.known.as_ref().is_some_and(|known| known.will_wake(context.waker()));
        if !is_known || self.cx.engine().has_tasks() {
            self.known = Some(context.waker().clone());
            if self.cancelled.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref(); // may have been cancelled since `main` last checked
            }
            for task in self.cx.engine().take_tasks(context) {
                self.running.get_or_insert_default().spawn(task.in_current_span());
            }
        }
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(context).is_ready()
        {
            context.waker().wake_by_ref(); // since the last poll
            self.timer = None;
        }
        if let Some(running) = &mut self.running {
            while let Poll::Ready(Some(done)) = running.poll_join_next(context) {
                if let Some(panic) = done.err().filter(JoinError::is_panic).map(JoinError::into_panic) {
                    let e = Error::from_panic(ErrorKind::Unexpected, "a task beside the run", panic);
                    self.cx.emit(EventKind::Warning { message: e.to_string() });
                }
            }
        }
    }
}

impl Drop for BackgroundTasks<'_, '_> {
    fn drop(&mut self) {
        // the tasks hold the run's context, and the run would hold the tasks
        self.cx.engine().close_tasks();
    }
}
