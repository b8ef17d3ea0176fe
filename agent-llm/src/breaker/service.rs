//! [`Breaker`]: tower service behind a circuit breaker.

use std::task::{Context, Poll};

use agent_core::{BoxError, BoxFuture, Error, Result, boxed};
use tower::Service;

use super::BreakerLayer;
use crate::{
    call::Call,
    service::{around, own},
};

/// Service created by [`BreakerLayer`].
#[derive(Clone)]
pub struct Breaker<S> {
    layer: BreakerLayer,
    inner: S,
}

around!(Breaker { layer: BreakerLayer });

impl<S, R: Call> Service<R> for Breaker<S>
where
    S: Service<R, Response = R::Answer>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = R::Answer;
    type Error = Error;
    type Future = BoxFuture<'static, Result<R::Answer>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx).map_err(own)
    }

    fn call(&mut self, req: R) -> Self::Future {
        let pass = match self.layer.enter(req.run()) {
            Ok(pass) => pass,
            Err(refused) => return Box::pin(std::future::ready(Err(refused))),
        };
        let call = self.inner.call(req);
        boxed(|| async move {
            let result = call.await.map_err(own);
            pass.settle(&result);
            result
        })
    }
}
