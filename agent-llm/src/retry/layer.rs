//! [`RetryLayer`]: tower layer that retries failed calls.

use std::{sync::Arc, time::Duration};

use agent_core::{ErrorKind, model::Backoff};
use tower::{Layer, retry::budget::Budget};

use super::{Retry, policy::Policy};

/// Retries failed calls of models and of [embedders](crate::embed::LayeredEmbedder) whose error is
/// [temporary](agent_core::Retry::Temporary).
///
/// # Default
///
/// At most 4 retries. A delay that the provider asks for is honoured, plus up to one second of
/// jitter; if it is longer than 30 s the error is returned at once and says so. Without a
/// provider's delay, the delay is random between 0 and 1, 2, 4, 8 s.
///
/// # Notes
///
/// * Each retry emits an [`EventKind::Retry`](agent_core::EventKind::Retry).
/// * If chunks of the failed attempt were sent, a [`Chunk::Restart`](agent_core::Chunk::Restart)
///   precedes the next attempt's chunks.
/// * Cancelling the run ends the wait at once.
/// * If the model itself retries, as models created [by name](crate::model) do, its attempts count
///   against this layer's limit, so that a failing call is attempted twice rather than five times.
/// * The journal keeps only the answer: a finished call is never repeated, and failed attempts
///   leave no trace.
///
/// # Differences from `tower::retry`
///
/// That layer can neither be cancelled while it waits nor see the chunks of a call's first attempt.
/// This layer accepts its budgets, see [`budget`](Self::budget).
///
/// # Order
///
/// ```text
/// // right: each attempt has ten seconds
/// .model_layer(RetryLayer::new()).model_layer(TimeoutLayer::new(ten_seconds))
/// // usually wrong: all attempts together have ten seconds
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
    pub(super) policy: Policy,
}

impl RetryLayer {
    /// Returns a layer with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of retries after the first attempt. Default: 4.
    #[must_use]
    pub fn retries(self, most: u32) -> Self {
        self.map(|backoff| backoff.retries(most))
    }

    /// Sets the maximum delay before the first retry; it doubles with every further retry. Default:
    /// 1 s.
    #[must_use]
    pub fn initial_delay(self, delay: Duration) -> Self {
        self.map(|backoff| backoff.initial_delay(delay))
    }

    /// Sets the maximum delay. If the provider asks for a longer one, its error is returned at
    /// once. Default: 30 s.
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> Self {
        self.map(|backoff| backoff.max_delay(delay))
    }

    /// Sets the random part of a delay, from 0 to 1. Default: 1 (full jitter). A delay that the
    /// provider asks for is never shortened.
    #[must_use]
    pub fn jitter(self, part: f64) -> Self {
        self.map(|backoff| backoff.jitter(part))
    }

    /// Returns the layer for a model's built-in retries; its errors carry the number of attempts,
    /// for an outer layer to count.
    pub(crate) fn of_model(retries: u32) -> Self {
        let mut layer = Self::new().retries(retries);
        layer.policy.tells_tries = true;
        layer
    }

    fn map(mut self, change: impl FnOnce(Backoff) -> Backoff) -> Self {
        self.policy.backoff = change(self.policy.backoff);
        self
    }

    /// Sets a separate backoff for errors of these kinds, including errors whose retryability is
    /// unknown. All failed attempts of a call count together, whatever their kinds; the settings of
    /// the last error's kind apply.
    #[must_use]
    pub fn on(mut self, kinds: impl IntoIterator<Item = ErrorKind>, backoff: Backoff) -> Self {
        self.policy.kinds.extend(kinds.into_iter().map(|kind| (kind, backoff)));
        self
    }

    /// Never retries errors of these kinds.
    #[must_use]
    pub fn never(self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        self.on(kinds, Backoff::new().retries(0))
    }

    /// Sets a retry budget that all calls share, such as
    /// [`TpsBudget`](tower::retry::budget::TpsBudget): each answer deposits and each retry
    /// withdraws, so that retries do not multiply the load on a failing provider. Default: none.
    #[must_use]
    pub fn budget(mut self, budget: impl Budget + Send + Sync + 'static) -> Self {
        self.policy.budget = Some(Arc::new(budget));
        self
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(Arc::new(self.policy.clone()), inner)
    }
}
