//! Retries for operations that are not tower services.

use agent_core::Result;

use super::RetryLayer;

impl RetryLayer {
    /// Repeats `call` until it succeeds or the policy allows no further attempt.
    pub(crate) async fn again<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut failed = 0;
        loop {
            let error = match call().await {
                Ok(answer) => {
                    self.policy.answered();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let (delay, _) = self.policy.next(&mut failed, error)?;
            tokio::time::sleep(delay).await;
        }
    }
}
