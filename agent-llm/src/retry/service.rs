//! [`Retry`].

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{BoxError, BoxFuture, Error, EventKind, ModelRequest, ModelResponse, Result, Spoken};
use tower::{Service, ServiceExt};

use super::policy::Policy;
use crate::attempt::{cancelled, unless_cancelled};

/// The service that [`RetryLayer`](super::RetryLayer) makes.
#[derive(Clone)]
pub struct Retry<S> {
    policy: Arc<Policy>,
    inner: S,
}

impl<S> Retry<S> {
    pub(super) fn new(policy: Arc<Policy>, inner: S) -> Self {
        Self { policy, inner }
    }

    /// The service around which it stands.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service around which it stands, to be changed.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service around which it stood.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S> Service<ModelRequest> for Retry<S>
where
    S: Service<ModelRequest, Response = ModelResponse> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx).map_err(|e| Error::from_boxed(e.into()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        // The service that is ready makes the first attempt; its clone is made ready for the next call.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(attempts(self.policy.clone(), inner, req))
    }
}

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
            Err(error) => Error::from_boxed(error.into()),
        };
        failed += 1;
        let Some(delay) = policy.delay(failed, &error) else { return Err(error) };
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
        inner.ready().await.map_err(|e| Error::from_boxed(e.into()))?;
    }
}

impl<S> fmt::Debug for Retry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("policy", &self.policy).field("inner", &std::any::type_name::<S>()).finish()
    }
}
