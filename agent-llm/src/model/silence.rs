//! Ending waits in which nothing arrives.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, Retry};
use tokio::time::{Instant, Sleep, sleep_until};

use super::waits::{Wait, Waits};

/// Ends waits that last longer than a limit: one for the time until the answer begins, one for each silence in it.
pub(super) struct Silence<'a> {
    first: &'a Waits,
    longest: Duration,
    heard: bool,
    /// The wait for the answer's beginning: all waits until then are one.
    waiting: Option<Wait<'a>>,
    /// That of all later waits. It is not moved when one begins, only when it fires too early: so a wait costs a look at
    /// the clock, however many thousand chunks there are.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<'a> Silence<'a> {
    /// At most as long as `first` says until the answer begins, then at most `longest` at a time.
    pub(super) fn new(first: &'a Waits, longest: Duration) -> Self {
        Self { first, longest, heard: false, waiting: None, timer: None }
    }

    /// Notes that the answer has begun.
    pub(super) fn heard(&mut self) {
        (self.heard, self.waiting) = (true, None);
    }

    /// Waits for `what`.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], temporary, if it does not come in time.
    pub(super) async fn wait<T>(&mut self, what: impl Future<Output = T>) -> Result<T> {
        let mut what = pin!(what);
        let mut deadline = None;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = what.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            let late = match self.heard {
                true => self.poll_later(*deadline.get_or_insert_with(|| Instant::now().checked_add(self.longest)), cx),
                false => self.waiting.get_or_insert_with(|| self.first.begin()).poll_too_long(cx),
            };
            late.map(|()| Err(self.too_long()))
        })
        .await
    }

    /// Ready at `deadline`; never if that is beyond the clock's range.
    fn poll_later(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
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
            false => format!("the answer did not begin within {:?}", self.first.longest()),
        };
        Error::new(ErrorKind::Timeout, message).with_retry(Retry::Temporary(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn too_long(silence: &mut Silence<'_>) -> (u64, String) {
        let began = Instant::now();
        let error = silence.wait(std::future::pending::<()>()).await.expect_err("too long");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
        (began.elapsed().as_secs(), error.message().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_the_whole_limit() {
        let first = Waits::new(SECOND * 10);
        let mut silence = Silence::new(&first, SECOND * 10);
        silence.heard();
        for _ in 0..5 {
            silence.wait(tokio::time::sleep(SECOND * 9)).await.expect("in time");
        }
        assert_eq!(too_long(&mut silence).await, (10, "nothing arrived for 10s".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn all_waits_until_the_answer_begins_have_one_limit() {
        for longest in [SECOND * 3, SECOND * 30] {
            let first = Waits::new(SECOND * 10);
            let mut silence = Silence::new(&first, longest);
            silence.wait(tokio::time::sleep(SECOND * 6)).await.expect("in time");
            assert_eq!(too_long(&mut silence).await, (4, "the answer did not begin within 10s".into()));
            silence.heard();
            assert_eq!(too_long(&mut silence).await.0, longest.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_limit_holds_though_the_answer_had_longer_to_begin() {
        let first = Waits::new(SECOND * 100);
        let mut silence = Silence::new(&first, SECOND);
        silence.wait(tokio::time::sleep(SECOND * 2)).await.expect("in time");
        silence.heard();
        assert_eq!(too_long(&mut silence).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_none() {
        let first = Waits::new(Duration::MAX);
        let mut silence = Silence::new(&first, Duration::MAX);
        for _ in 0..2 {
            silence.wait(tokio::time::sleep(SECOND * (1 << 20))).await.expect("in time");
            silence.heard();
        }
    }
}
