//! Ending waits in which nothing arrives.

use std::{
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result, Retry};
use tokio::time::{Instant, Sleep, sleep_until};

/// Ends waits that last longer than a limit.
///
/// All waits of a call share one timer. It is not moved when a wait begins, only when it fires too early: so a wait costs
/// a look at the clock, however many thousand chunks there are.
pub(super) struct Silence {
    longest: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, timer: None }
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
            let Some(deadline) = *deadline.get_or_insert_with(|| Instant::now().checked_add(self.longest)) else {
                return Poll::Pending; // a limit beyond the clock's range is none
            };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
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
        let message = format!("nothing arrived for {:?}", self.longest);
        Error::new(ErrorKind::Timeout, message).with_retry(Retry::Temporary(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_the_whole_limit() {
        let mut silence = Silence::new(Duration::from_secs(10));
        for _ in 0..5 {
            silence.wait(tokio::time::sleep(Duration::from_secs(9))).await.expect("in time");
        }
        let began = Instant::now();
        let error = silence.wait(std::future::pending::<()>()).await.expect_err("too long");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Timeout, true));
        assert_eq!(began.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_none() {
        let mut silence = Silence::new(Duration::MAX);
        silence.wait(tokio::time::sleep(Duration::from_secs(1 << 20))).await.expect("in time");
    }
}
