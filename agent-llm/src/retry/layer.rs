//! [`RetryLayer`].

use std::{sync::Arc, time::Duration};

use tower::Layer;

use super::{Retry, backoff::Backoff};

/// Tries model calls again that failed [temporarily](agent_core::Retry::Temporary).
///
/// # Default
///
/// At most 4 more attempts. The provider's delay is honoured; if it is longer than 30 s the error is returned at once.
/// Without one the delay is random between 0 and 1, 2, 4, 8 s.
///
/// # Notes
///
/// * Each new attempt is announced by an [`EventKind::Retry`](agent_core::EventKind::Retry).
/// * If chunks of the failed attempt went out, a [`Chunk::Restart`](agent_core::Chunk::Restart) comes before the next one.
/// * A cancelled run ends the wait at once.
///
/// # Differences from `tower::retry`
///
/// That layer cannot give up while it waits, nor see the chunks of a call's first attempt.
///
/// # Order
///
/// ```text
/// // right: each attempt has ten seconds
/// .model_layer(RetryLayer::new()).model_layer(TimeoutLayer::new(ten_seconds))
/// // wrong, mostly: all attempts together have ten seconds
/// .model_layer(TimeoutLayer::new(ten_seconds)).model_layer(RetryLayer::new())
/// ```
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::ModelService;
/// use agent_llm::RetryLayer;
/// use tower::Layer;
///
/// let layer = RetryLayer::new().retries(2).max_delay(Duration::from_secs(5));
/// let stack = |model: ModelService| ModelService::from_boxed(layer.layer(model));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RetryLayer {
    backoff: Backoff,
}

impl RetryLayer {
    /// The default layer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most attempts after the first. Default: 4.
    #[must_use]
    pub fn retries(mut self, most: u32) -> Self {
        self.backoff.retries = most;
        self
    }

    /// Sets the longest delay after the first attempt, which doubles with every further one. Default: 1 s.
    #[must_use]
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.backoff.base = delay;
        self
    }

    /// Sets the longest delay; if the provider asks for a longer one, its error is returned. Default: 30 s.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.backoff.longest = delay;
        self
    }

    /// Sets which part of a delay is taken, from 0 to 1. Default: random. The provider's own delay is always taken whole.
    #[must_use]
    pub fn jitter(mut self, part: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.backoff.jitter = Arc::new(part);
        self
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(self.backoff.clone(), inner)
    }
}
