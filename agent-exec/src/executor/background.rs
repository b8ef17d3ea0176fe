//! Background tasks of a run.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use agent_core::{Result, RunCx};
use tokio::{
    task::JoinSet,
    time::{Sleep, sleep_until},
};
use tokio_util::sync::WaitForCancellationFuture;
use tracing::Instrument;

use super::{Deadline, guard::GRACE};
use crate::engine::Opened;

/// Drives `main`, and beside it what is handed to the run; the latter ends with the former, also if that is dropped. `main` is
/// polled when the run is cancelled, when its time is up, and again when the [grace](GRACE) after that is.
///
/// `main` is pinned where it is: a future that is handed over has two places in the one that it is handed to.
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

/// Drives a call of the run `cx`, which runs beside others in a task of its own.
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

/// Waits beside calls that run in tasks of their own, until the journal is known to have refused something of the run `cx`.
///
/// # Errors
/// The journal's.
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
    /// Whom the run wakes when something is handed to it, or it is cancelled.
    known: Option<Waker>,
    /// Kept for the whole run, whose parts need only look.
    cancelled: Pin<&'b mut WaitForCancellationFuture<'a>>,
    /// Of a run with a deadline.
    timer: Option<Pin<Box<Sleep>>>,
    /// Few runs have any.
    running: Option<JoinSet<()>>,
}

impl BackgroundTasks<'_, '_> {
    fn poll(&mut self, context: &mut Context<'_>) {
        self.cx.engine().log().poll_idle(context);
        let is_known = self.known.as_ref().is_some_and(|known| known.will_wake(context.waker()));
        if !is_known || self.cx.engine().has_tasks() {
            self.known = Some(context.waker().clone());
            if self.cancelled.as_mut().poll(context).is_ready() {
                context.waker().wake_by_ref(); // since whoever looked last
            }
            for task in self.cx.engine().take_tasks(context) {
                self.running.get_or_insert_default().spawn(task.in_current_span());
            }
        }
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(context).is_ready()
        {
            context.waker().wake_by_ref(); // since whoever looked last
            let is_over = Deadline::of_run(self.cx).is_none_or(|deadline| deadline.has_passed(GRACE));
            self.timer = (!is_over).then(|| Box::pin(sleep_until(timer.deadline() + GRACE)));
        }
        if let Some(running) = &mut self.running {
            while let Poll::Ready(Some(_)) = running.poll_join_next(context) {}
        }
    }
}

impl Drop for BackgroundTasks<'_, '_> {
    fn drop(&mut self) {
        self.cx.engine().close_tasks(); // the tasks know the run: left where they are, they would keep each other
    }
}
