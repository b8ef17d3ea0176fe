//! [`Retry`]: tower service that retries failed calls.

use std::sync::Arc;

use agent_core::{BoxError, EventKind, Result, model::Spoken};
use tower::{Service, ServiceExt};

use super::policy::Policy;
use crate::{
    attempt::{cancelled, unless_cancelled},
    call::{Call, cancellation, tell},
    service::{answers, around, own},
};

/// Service created by [`RetryLayer`](super::RetryLayer).
#[derive(Clone)]
pub struct Retry<S> {
    pub(super) policy: Arc<Policy>,
    pub(super) inner: S,
}

around!(Retry { policy: Arc<Policy> });

answers!(Retry, ready, |policy| attempts);

/// Calls `inner`, which is ready, until a call succeeds or the policy allows no further attempt.
async fn attempts<S, R>(policy: Arc<Policy>, mut inner: S, req: R) -> Result<R::Answer>
where
    R: Call,
    S: Service<R, Response = R::Answer>,
    S::Error: Into<BoxError>,
{
    let spoken = Spoken::default();
    let mut failed = 0;
    loop {
        let error = match inner.call(req.clone().map_model(|req| spoken.listen(req))).await {
            Ok(response) => {
                policy.answered();
                return Ok(response);
            }
            Err(error) => own(error),
        };
        let (delay, error) = policy.next(&mut failed, error)?;
        let error = unless_cancelled(req.run(), error)?;
        let event = EventKind::Retry {
            attempt: failed + 1,
            delay: delay.as_secs_f64(),
            kind: error.kind(),
            error: error.to_string(),
        };
        tell(req.run(), event);
        tokio::select! {
            biased;
            () = cancellation(req.run()) => return Err(cancelled(error)),
            () = tokio::time::sleep(delay) => {}
        }
        req.of_model().map_or(Ok(()), |req| spoken.take_back(&req.sink))?;
        inner.ready().await.map_err(own)?;
    }
}
