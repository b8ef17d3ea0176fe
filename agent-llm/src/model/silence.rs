//! Ending waits in which nothing arrives.

use std::{
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, Retry};
use tokio::time::{Instant, Sleep, sleep_until};

/// Ends waits that last longer than a limit: one for the time until the answer begins, one for each silence in it.
///
/// All waits of a call share one timer. It is not moved when a wait begins, only when it fires too early: so a wait costs
/// a look at the clock, however many thousand chunks there are.
pub(super) struct Silence {
    first: Duration,
    longest: Duration,
    /// When the wait for the answer's beginning began.
    began: Option<Instant>,
    heard: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    /// At most `first` until the answer begins, then at most `longest` at a time.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, began: None, heard: false, timer: None }
    }

    /// Notes that the answer has begun.
    pub(super) fn heard(&mut self) {
        self.heard = true;
    }

    /// When a wait that begins now has lasted too long; none if that is beyond the clock's range.
    fn deadline(&mut self) -> Option<Instant> {
        let now = Instant::now();
        match self.heard {
            true => now.checked_add(self.longest),
            false => self.began.get_or_insert(now).checked_add(self.first),
        }
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
            let Some(deadline) = *deadline.get_or_insert_with(|| self.deadline()) else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() > deadline {
                timer.as_mut().reset(deadline);
            }
            while timer.as_mut().poll(cx).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(Err(self.too_long()));
                }
                timer.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
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

    async fn too_long(silence: &mut Silence) -> (u64, String) {
        let began = Instant::now();
        let error = silence.wait(std::future::pending::<()>()).await.expect_err("too long");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
        (began.elapsed().as_secs(), error.message().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_the_whole_limit() {
        let mut silence = Silence::new(SECOND * 10, SECOND * 10);
        silence.heard();
        for _ in 0..5 {
            silence.wait(tokio::time::sleep(SECOND * 9)).await.expect("in time");
        }
        assert_eq!(too_long(&mut silence).await, (10, "nothing arrived for 10s".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn all_waits_until_the_answer_begins_have_one_limit() {
        for longest in [SECOND * 3, SECOND * 30] {
            let mut silence = Silence::new(SECOND * 10, longest);
            silence.wait(tokio::time::sleep(SECOND * 6)).await.expect("in time");
            assert_eq!(too_long(&mut silence).await, (4, "the answer did not begin within 10s".into()));
            silence.heard();
            assert_eq!(too_long(&mut silence).await.0, longest.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_limit_holds_though_the_timer_was_set_for_a_longer_one() {
        let mut silence = Silence::new(SECOND * 100, SECOND);
        silence.wait(tokio::time::sleep(SECOND * 2)).await.expect("in time");
        silence.heard();
        assert_eq!(too_long(&mut silence).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_none() {
        let mut silence = Silence::new(Duration::MAX, Duration::MAX);
        for _ in 0..2 {
            silence.wait(tokio::time::sleep(SECOND * (1 << 20))).await.expect("in time");
            silence.heard();
        }
    }
}
