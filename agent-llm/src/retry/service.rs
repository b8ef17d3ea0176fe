//! [`Retry`].

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use agent_core::{BoxError, BoxFuture, Chunk, Error, ErrorKind, EventKind, ModelRequest, ModelResponse, Result};
use tower::{Service, ServiceExt};

use super::backoff::Backoff;

/// The service that [`RetryLayer`](super::RetryLayer) makes.
#[derive(Clone)]
pub struct Retry<S> {
    backoff: Backoff,
    inner: S,
}

impl<S> Retry<S> {
    pub(super) fn new(backoff: Backoff, inner: S) -> Self {
        Self { backoff, inner }
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
        Box::pin(attempts(self.backoff.clone(), inner, req))
    }
}

/// Calls `inner`, which is ready, until a call succeeds or there should be no other.
async fn attempts<S>(backoff: Backoff, mut inner: S, req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
{
    let spoke = Spoke::default();
    let mut failed = 0;
    loop {
        let error = match inner.call(spoke.listen(req.clone())).await {
            Ok(response) => return Ok(response),
            Err(error) => Error::from_boxed(error.into()),
        };
        failed += 1;
        let Some(delay) = backoff.delay(failed, &error) else { return Err(error) };
        let cancelled = |error: Error| {
            Error::new(ErrorKind::Cancelled, "the run was cancelled before the call could be tried again")
                .with_source(error)
        };
        if req.cx.cancellation().is_cancelled() {
            return Err(cancelled(error));
        }
        let announced = EventKind::Retry { attempt: failed + 1, delay: delay.as_secs_f64(), error: error.to_string() };
        req.cx.emit(announced);
        tokio::select! {
            biased;
            () = req.cx.cancellation().cancelled() => return Err(cancelled(error)),
            () = tokio::time::sleep(delay) => {}
        }
        if spoke.take() {
            req.sink.push(Chunk::Restart)?;
        }
        inner.ready().await.map_err(|e| Error::from_boxed(e.into()))?;
    }
}

/// Whether an attempt sent chunks.
#[derive(Default)]
struct Spoke(Arc<AtomicBool>);

impl Spoke {
    /// The request with a sink that notes chunks. Where nobody listens to them, none are made for this either.
    fn listen(&self, mut req: ModelRequest) -> ModelRequest {
        if !req.sink.is_idle() {
            let spoke = self.0.clone();
            req.sink = req.sink.with_observer(move |_| spoke.store(true, Ordering::Relaxed));
        }
        req
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl<S> fmt::Debug for Retry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("backoff", &self.backoff).field("inner", &std::any::type_name::<S>()).finish()
    }
}
