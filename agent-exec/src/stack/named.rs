//! Tower layers with names.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{BoxFuture, Error, ErrorKind, Result, boxed, engine::catch_panic, middleware::SharedService};
use tower::Service;

/// Service made by a tower layer. A panic becomes an error that names the layer.
pub(crate) struct Named<T, U> {
    layer: Arc<str>,
    inner: SharedService<T, U>,
}

impl<T: Send + 'static, U: Send + 'static> Named<T, U> {
    pub(crate) fn service(layer: &Arc<str>, inner: SharedService<T, U>) -> SharedService<T, U> {
        SharedService::from_boxed(Self { layer: layer.clone(), inner })
    }
}

impl<T: Send + 'static, U: Send + 'static> Service<T> for Named<T, U> {
    type Response = U;
    type Error = Error;
    type Future = BoxFuture<'static, Result<U>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, req: T) -> Self::Future {
        let layer = self.layer.clone();
        let error = move |panic: Box<dyn std::any::Any + Send>| {
            Error::from_panic(ErrorKind::Middleware, &format!("the layer '{layer}'"), panic)
        };
        boxed(|| catch_panic(|| self.inner.call(req), error))
    }
}

impl<T, U> Clone for Named<T, U> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), inner: self.inner.clone() }
    }
}
