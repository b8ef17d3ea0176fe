//! [`Exclusive`]: adapts tower layers whose services are not `Clone`.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::ReusableBoxFuture;
use tower::{Layer, Service};

/// Adapts a tower layer whose service is not `Clone`, such as `tower::limit::RateLimitLayer`: all
/// calls share one service, in the order in which they ask for it. A call holds the service until it
/// has begun, and runs concurrently with the others after that.
///
/// ```
/// use agent_core::middleware::Exclusive;
/// use std::time::Duration;
/// use tower::limit::RateLimitLayer;
///
/// // tower's rate limit has a timer: build the agent within a Tokio runtime
/// let five_a_minute = Exclusive::new(RateLimitLayer::new(5, Duration::from_secs(60)));
/// // builder.model_layer(five_a_minute)
/// # let _ = five_a_minute;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Exclusive<L>(L);

impl<L> Exclusive<L> {
    /// Adapts `layer`.
    pub fn new(layer: L) -> Self {
        Self(layer)
    }
}

impl<S, L: Layer<S>> Layer<S> for Exclusive<L> {
    type Service = ExclusiveService<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        ExclusiveService { inner: Arc::new(Mutex::new(self.0.layer(inner))), waiting: None, held: None }
    }
}

/// Service of [`Exclusive`].
pub struct ExclusiveService<S> {
    inner: Arc<Mutex<S>>,
    waiting: Option<ReusableBoxFuture<'static, OwnedMutexGuard<S>>>,
    held: Option<OwnedMutexGuard<S>>,
}

impl<R, S> Service<R> for ExclusiveService<S>
where
    S: Service<R> + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let held = match &mut self.held {
            Some(held) => held,
            none => {
                let lock = || ReusableBoxFuture::new(self.inner.clone().lock_owned());
                let guard = ready!(self.waiting.get_or_insert_with(lock).poll(cx));
                self.waiting = None;
                none.insert(guard)
            }
        };
        let result = ready!(held.poll_ready(cx));
        if result.is_err() {
            self.held = None;
        }
        Poll::Ready(result)
    }

    /// # Panics
    /// If `poll_ready` did not return ready first.
    fn call(&mut self, req: R) -> S::Future {
        self.held.take().expect("poll_ready must return ready before call").call(req)
    }
}

impl<S> Clone for ExclusiveService<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), waiting: None, held: None }
    }
}

impl<S> fmt::Debug for ExclusiveService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusiveService").finish_non_exhaustive()
    }
}
