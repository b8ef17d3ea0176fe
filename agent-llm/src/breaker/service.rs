//! [`Breaker`].

use std::{
    fmt,
    task::{Context, Poll},
};

use agent_core::{BoxError, BoxFuture, Error, ModelRequest, ModelResponse, Result};
use tower::Service;

use super::BreakerLayer;

/// The service that [`BreakerLayer`] makes.
#[derive(Clone)]
pub struct Breaker<S> {
    layer: BreakerLayer,
    inner: S,
}

impl<S> Breaker<S> {
    pub(super) fn new(layer: BreakerLayer, inner: S) -> Self {
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

impl<S> Service<ModelRequest> for Breaker<S>
where
    S: Service<ModelRequest, Response = ModelResponse>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = ModelResponse;
    type Error = Error;
    type Future = BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx).map_err(|e| Error::from_boxed(e.into()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        let pass = match self.layer.enter(&req.cx) {
            Ok(pass) => pass,
            Err(refused) => return Box::pin(std::future::ready(Err(refused))),
        };
        let call = self.inner.call(req);
        Box::pin(async move {
            let result = call.await.map_err(|e| Error::from_boxed(e.into()));
            pass.settle(&result);
            result
        })
    }
}

impl<S> fmt::Debug for Breaker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("layer", &self.layer).field("inner", &std::any::type_name::<S>()).finish()
    }
}
