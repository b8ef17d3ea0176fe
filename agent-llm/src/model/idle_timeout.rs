//! Read timeouts: time to first byte, and idle time between chunks.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, Retry};
use tokio::time::{Instant, Sleep, sleep_until};

/// Read timeout: one limit for the time to the beginning of the answer, and one for each idle
/// period in it.
pub(super) struct IdleTimeout {
    first: Duration,
    longest: Duration,
    heard: bool,
    /// Deadline for the beginning of the answer, set by the first wait: all waits until then count
    /// together.
    begins_by: Option<Option<Instant>>,
    /// Created by the first wait that blocks. A new wait does not reset the timer; it is only reset
    /// when it fires too early. A wait therefore costs one look at the clock, even with thousands
    /// of chunks.
    timer: Option<Pin<Box<Sleep>>>,
}

impl IdleTimeout {
    /// Creates a timeout of `first` until the answer begins, then of `longest` for each wait.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, heard: false, begins_by: None, timer: None }
    }

    /// Records that the answer has begun.
    pub(super) fn heard(&mut self) {
        if !std::mem::replace(&mut self.heard, true) {
            self.timer = None; // it may be set for later than the idle timeout allows
        }
    }

    /// Waits for `what`.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], temporary, if it does not complete in time.
    pub(super) async fn wait<T>(&mut self, what: impl Future<Output = T>) -> Result<T> {
        let mut what = pin!(what);
        let mut deadline = None;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = what.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            let deadline = *deadline.get_or_insert_with(|| self.deadline());
            self.poll_late(deadline, cx).map(|()| Err(self.too_long()))
        })
        .await
    }

    /// Returns the deadline of a wait that begins now; `None` if it is beyond the clock's range.
    fn deadline(&mut self) -> Option<Instant> {
        let after = |limit| Instant::now().checked_add(limit);
        match self.heard {
            true => after(self.longest),
            false => *self.begins_by.get_or_insert_with(|| after(self.first)),
        }
    }

    /// Completes at `deadline`.
    fn poll_late(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn too_long(&self) -> Error {
        let message = match self.heard {
            true => format!("nothing arrived for {:?}", self.longest),
            false => format!("the answer did not begin within {:?}", self.first),
        };
        Error::new(ErrorKind::Timeout, message).with_retry(Retry::Temporary(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn too_long(idle_timeout: &mut IdleTimeout) -> (u64, String) {
        let began = Instant::now();
        let error = idle_timeout.wait(std::future::pending::<()>()).await.expect_err("too long");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
        (began.elapsed().as_secs(), error.message().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_the_whole_limit() {
        let mut idle_timeout = IdleTimeout::new(SECOND * 10, SECOND * 10);
        idle_timeout.heard();
        for _ in 0..5 {
            idle_timeout.wait(tokio::time::sleep(SECOND * 9)).await.expect("in time");
        }
        assert_eq!(too_long(&mut idle_timeout).await, (10, "nothing arrived for 10s".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn all_waits_until_the_answer_begins_have_one_limit() {
        for longest in [SECOND * 3, SECOND * 30] {
            let mut idle_timeout = IdleTimeout::new(SECOND * 10, longest);
            idle_timeout.wait(tokio::time::sleep(SECOND * 6)).await.expect("in time");
            assert_eq!(too_long(&mut idle_timeout).await, (4, "the answer did not begin within 10s".into()));
            idle_timeout.heard();
            assert_eq!(too_long(&mut idle_timeout).await.0, longest.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_limit_holds_though_the_answer_had_longer_to_begin() {
        let mut idle_timeout = IdleTimeout::new(SECOND * 100, SECOND);
        idle_timeout.wait(tokio::time::sleep(SECOND * 2)).await.expect("in time");
        idle_timeout.heard();
        assert_eq!(too_long(&mut idle_timeout).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_none() {
        let mut idle_timeout = IdleTimeout::new(Duration::MAX, Duration::MAX);
        for _ in 0..2 {
            idle_timeout.wait(tokio::time::sleep(SECOND * (1 << 20))).await.expect("in time");
            idle_timeout.heard();
        }
    }
}
