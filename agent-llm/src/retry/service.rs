//! [`Retry`].

use std::sync::Arc;

use agent_core::{BoxError, EventKind, ModelRequest, ModelResponse, Result, model::Spoken};
use tower::{Service, ServiceExt};

use super::policy::Policy;
use crate::{
    attempt::{cancelled, unless_cancelled},
    service::{answers, around, own},
};

/// The service that [`RetryLayer`](super::RetryLayer) makes.
#[derive(Clone)]
pub struct Retry<S> {
    pub(super) policy: Arc<Policy>,
    pub(super) inner: S,
}

around!(Retry { policy: Arc<Policy> });

answers!(Retry, ready, |policy| attempts);

/// Calls `inner`, which is ready, until a call succeeds or there should be no other.
async fn attempts<S>(policy: Arc<Policy>, mut inner: S, req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
{
    let spoken = Spoken::default();
    let mut failed = 0;
    loop {
        let error = match inner.call(spoken.listen(req.clone())).await {
            Ok(response) => {
                policy.answered();
                return Ok(response);
            }
            Err(error) => own(error),
        };
        let (delay, error) = policy.next(&mut failed, error)?;
        let error = unless_cancelled(&req.cx, error)?;
        req.cx.emit(EventKind::Retry {
            attempt: failed + 1,
            delay: delay.as_secs_f64(),
            kind: error.kind(),
            error: error.to_string(),
        });
        tokio::select! {
            biased;
            () = req.cx.cancellation().cancelled() => return Err(cancelled(error)),
            () = tokio::time::sleep(delay) => {}
        }
        spoken.take_back(&req.sink)?;
        inner.ready().await.map_err(own)?;
    }
}
