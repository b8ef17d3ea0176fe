//! Type-erased services, from which every stack is built.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use futures::future::{BoxFuture, ready as settled};
use tower::{Service, ServiceExt};

use crate::error::{BoxError, Error, Result};

type Erased<T, U> = dyn Service<T, Response = U, Error = Error, Future = BoxFuture<'static, Result<U>>> + Send + Sync;

/// A type-erased service whose clone costs one reference count.
///
/// `tower::util::BoxCloneSyncService` clones its whole stack, so layers that clone their inner
/// service per call (retry, `from_fn`) make a stack of *n* layers cost *n²* allocations. Here a
/// clone shares the prototype, and one level is copied when the clone is first polled for
/// readiness. Readiness therefore still propagates, so that `load_shed` sheds and
/// `concurrency_limit` limits.
///
/// As with every tower service, `poll_ready` must return ready before `call`;
/// [`ServiceExt::oneshot`] does both.
///
/// # Panics
/// `call` panics if `poll_ready` did not return ready first.
pub struct SharedService<T, U> {
    prototype: Arc<dyn Prototype<T, U>>,
    active: Option<Box<Erased<T, U>>>,
}

trait Prototype<T, U>: Send + Sync {
    fn fresh(&self) -> Box<Erased<T, U>>;

    fn run(&self, req: T) -> BoxFuture<'static, Result<U>>;
}

impl<S, T, U> Prototype<T, U> for S
where
    S: Service<T, Response = U, Error = Error, Future = BoxFuture<'static, Result<U>>> + Clone + Send + Sync + 'static,
    T: Send + 'static,
    U: Send + 'static,
{
    fn fresh(&self) -> Box<Erased<T, U>> {
        Box::new(self.clone())
    }

    fn run(&self, req: T) -> BoxFuture<'static, Result<U>> {
        let mut service = self.clone();
        // Most services are ready at once; a pending one is polled again with a real waker.
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => service.call(req),
            Poll::Ready(Err(e)) => Box::pin(settled(Err(e))),
            Poll::Pending => Box::pin(service.oneshot(req)),
        }
    }
}

impl<T: Send + 'static, U: Send + 'static> SharedService<T, U> {
    /// Erases the type of a service with any boxable error; errors are converted to [`Error`].
    pub fn new<S>(service: S) -> Self
    where
        S: Service<T, Response = U> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        let service = service
            .map_err(|e: S::Error| Error::from_boxed(e.into()))
            .map_future(|f| Box::pin(f) as BoxFuture<'static, Result<U>>);
        Self { prototype: Arc::new(service), active: None }
    }

    /// Like [`new`](Self::new), for a service that already has this crate's error and boxed
    /// futures: nothing is boxed twice.
    pub fn from_boxed<S>(service: S) -> Self
    where
        S: Service<T, Response = U, Error = Error, Future = BoxFuture<'static, Result<U>>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self { prototype: Arc::new(service), active: None }
    }

    /// Makes one call on a clone once it is ready: like [`ServiceExt::oneshot`], with fewer
    /// allocations.
    pub fn run(&self, req: T) -> BoxFuture<'static, Result<U>> {
        self.prototype.run(req)
    }
}

impl<T, U> Service<T> for SharedService<T, U> {
    type Response = U;
    type Error = Error;
    type Future = BoxFuture<'static, Result<U>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let active = self.active.get_or_insert_with(|| self.prototype.fresh());
        let result = ready!(active.poll_ready(cx));
        if result.is_err() {
            self.active = None; // a service that failed to become ready must not be used again
        }
        Poll::Ready(result)
    }

    fn call(&mut self, req: T) -> Self::Future {
        self.active.as_mut().expect("poll_ready must return ready before call").call(req)
    }
}

impl<T, U> Clone for SharedService<T, U> {
    fn clone(&self) -> Self {
        Self { prototype: self.prototype.clone(), active: None }
    }
}

impl<T, U> fmt::Debug for SharedService<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedService").finish_non_exhaustive()
    }
}
