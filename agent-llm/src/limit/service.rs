//! [`RateLimited`].

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use agent_core::{BoxError, BoxFuture, Error, ErrorKind, ModelRequest, ModelResponse, Result, Retry};
use tower::{Service, ServiceExt};

use super::{RateLimitLayer, place::Place};

/// The service that [`RateLimitLayer`] makes.
#[derive(Clone)]
pub struct RateLimited<S> {
    layer: RateLimitLayer,
    inner: S,
}

impl<S> RateLimited<S> {
    pub(super) fn new(layer: RateLimitLayer, inner: S) -> Self {
        Self { layer, inner }
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

impl<S> Service<ModelRequest> for RateLimited<S>
where
    S: Service<ModelRequest, Response = ModelResponse> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    /// Always ready: what stands inside is made ready when the call may go.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        Box::pin(in_turn(self.layer.clone(), self.inner.clone(), req))
    }
}

async fn in_turn<S>(layer: RateLimitLayer, mut inner: S, req: ModelRequest) -> Result<ModelResponse>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
{
    let tokens = layer.limiter().rules().estimate.as_ref().map_or(0, |estimate| estimate(&req));
    let mut place = Place::take(layer.limiter(), layer.priority_of(&req), tokens)?;
    loop {
        let mut permit = place.wait(&req.cx).await?;
        let ready = inner.ready().await.map_err(|e| Error::from_boxed(e.into()))?;
        permit.send();
        let spoke = Arc::new(AtomicBool::new(false));
        let error = match ready.call(listening(&req, &spoke)).await {
            Ok(response) => {
                permit.answered(&response);
                return Ok(response);
            }
            Err(error) => Error::from_boxed(error.into()),
        };
        let Some(delay) = refusal(&error) else { return Err(error) };
        let closed = permit.refused(delay);
        if spoke.load(Ordering::Relaxed) {
            return Err(error);
        }
        place.take_again(&req.cx, error, closed);
    }
}

/// The delay that the provider asks for, if it refused the call for its rate.
fn refusal(error: &Error) -> Option<Option<Duration>> {
    match (error.kind(), error.retry()) {
        (ErrorKind::RateLimited, Retry::Temporary(delay)) => Some(delay),
        _ => None,
    }
}

/// The request with a sink that notes that there were chunks. Where nobody listens to them, none are made for this either.
fn listening(req: &ModelRequest, spoke: &Arc<AtomicBool>) -> ModelRequest {
    let mut req = req.clone();
    if !req.sink.is_idle() {
        let spoke = spoke.clone();
        req.sink = req.sink.with_observer(move |_| spoke.store(true, Ordering::Relaxed));
    }
    req
}

impl<S> fmt::Debug for RateLimited<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimited").field("layer", &self.layer).field("inner", &std::any::type_name::<S>()).finish()
    }
}
