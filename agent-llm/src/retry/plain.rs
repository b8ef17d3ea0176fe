//! Trying calls again that belong to no run.

use std::sync::Arc;

use agent_core::{
    BoxError, Result,
    embed::{EmbedRequest, EmbedResponse},
};
use tower::{Service, ServiceExt};

use super::{Retry, RetryLayer, policy::Policy};
use crate::service::{answers, own};

impl RetryLayer {
    /// Calls until a call succeeds or there should be no other.
    pub(crate) async fn again<T, F>(&self, call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        again(&self.policy, call).await
    }
}

async fn again<T, F>(policy: &Policy, mut call: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut failed = 0;
    loop {
        let error = match call().await {
            Ok(answer) => {
                policy.answered();
                return Ok(answer);
            }
            Err(error) => error,
        };
        let (delay, _) = policy.next(&mut failed, error)?;
        tokio::time::sleep(delay).await;
    }
}

answers!(Retry, ready, |policy| attempts, EmbedRequest => EmbedResponse);

/// Calls `inner`, which is ready, until a call succeeds or there should be no other.
async fn attempts<S>(policy: Arc<Policy>, mut inner: S, req: EmbedRequest) -> Result<EmbedResponse>
where
    S: Service<EmbedRequest, Response = EmbedResponse> + Clone,
    S::Error: Into<BoxError>,
{
    let mut failed = 0;
    loop {
        let error = match inner.call(req.clone()).await {
            Ok(response) => {
                policy.answered();
                return Ok(response);
            }
            Err(error) => own(error),
        };
        let (delay, _) = policy.next(&mut failed, error)?;
        tokio::time::sleep(delay).await;
        inner.ready().await.map_err(own)?;
    }
}
