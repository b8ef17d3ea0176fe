//! [`RateLimitLayer`]: tower layer that sends calls through a rate limiter.

use std::{fmt, sync::Arc};

use agent_core::ModelRequest;
use tower::Layer;

use super::{RateLimited, RateLimiter};
use crate::call::Call;

type Priority = dyn Fn(&ModelRequest) -> i8 + Send + Sync;

/// Sends calls of a model or of an [embedder](crate::embed::LayeredEmbedder) through a
/// [`RateLimiter`], which it shares with other layers.
///
/// # Notes
///
/// * Inner services become ready only after admission, so that waiting calls hold no permits there.
/// * A call that fails for a reason other than its rate is returned at once: retries are the job of
///   [`RetryLayer`](crate::RetryLayer).
/// * A refused call that had already sent chunks is returned, too, so that the layer that retries
///   it can retract them.
///
/// # Order
///
/// ```text
/// // right: each attempt waits in the queue, and its timeout starts when it is sent
/// .model_layer(RetryLayer::new()).model_layer(limiter.layer()).model_layer(TimeoutLayer::new(minute))
/// // wrong: retries bypass the queue, and cached answers wait in it
/// .model_layer(limiter.layer()).model_layer(cache.layer(&info)).model_layer(RetryLayer::new())
/// ```
#[derive(Clone)]
pub struct RateLimitLayer {
    limiter: RateLimiter,
    priority: i8,
    /// Priority of each model call; overrides `priority`.
    by: Option<Arc<Priority>>,
}

impl RateLimitLayer {
    /// Creates a layer of `limiter` with priority 0.
    pub fn new(limiter: RateLimiter) -> Self {
        Self { limiter, priority: 0, by: None }
    }

    /// Sets the priority of all calls: lower goes first. Default: 0.
    #[must_use]
    pub fn priority(mut self, priority: i8) -> Self {
        (self.priority, self.by) = (priority, None);
        self
    }

    /// Sets the priority of each model call: lower goes first. The run is in the request, so that
    /// the priority can depend on its depth or on one of its
    /// [resources](agent_core::RunCx::resources).
    ///
    /// ```
    /// # let limiter = agent_llm::RateLimiter::builder("acme").build()?;
    /// // Calls with a waiting user go before those of sub-agents.
    /// let layer = limiter.layer().priority_by(|req| if req.cx.ids().depth == 0 { -1 } else { 0 });
    /// # drop(layer);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    #[must_use]
    pub fn priority_by(mut self, priority: impl Fn(&ModelRequest) -> i8 + Send + Sync + 'static) -> Self {
        self.by = Some(Arc::new(priority));
        self
    }

    /// Returns the limiter.
    pub fn limiter(&self) -> &RateLimiter {
        &self.limiter
    }

    pub(super) fn priority_of(&self, req: &impl Call) -> i8 {
        self.by.as_ref().zip(req.of_model()).map_or(self.priority, |(by, req)| by(req))
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited::new(self.clone(), inner)
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}
