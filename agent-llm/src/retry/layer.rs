//! [`RetryLayer`].

use std::{sync::Arc, time::Duration};

use agent_core::{ErrorKind, model::Backoff};
use tower::{Layer, retry::budget::Budget};

use super::{Retry, policy::Policy};

/// Tries calls of models and of [embedders](crate::embed::LayeredEmbedder) again that failed [temporarily](agent_core::Retry::Temporary).
///
/// # Default
///
/// At most 4 more attempts. The provider's delay is kept, with up to a second more; if it is longer than 30 s the error is
/// returned at once and says so. Without one the delay is random between 0 and 1, 2, 4, 8 s.
///
/// # Notes
///
/// * Each new attempt is announced by an [`EventKind::Retry`](agent_core::EventKind::Retry).
/// * If chunks of the failed attempt went out, a [`Chunk::Restart`](agent_core::Chunk::Restart) comes before the next one.
/// * A cancelled run ends the wait at once.
/// * A model that tries calls again by itself, as models [by name](crate::model) do, is asked with fewer attempts: those that
///   it has made are counted, so that it is asked twice and not five times.
/// * Only the answer is kept in the journal: a finished call is never made again, and failed attempts leave nothing behind.
///
/// # Differences from `tower::retry`
///
/// That layer cannot give up while it waits, nor see the chunks of a call's first attempt. Its budgets are used here too.
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
    pub(super) policy: Policy,
}

impl RetryLayer {
    /// The default layer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most attempts after the first. Default: 4.
    #[must_use]
    pub fn retries(self, most: u32) -> Self {
        self.map(|backoff| backoff.retries(most))
    }

    /// Sets the longest delay after the first attempt, which doubles with every further one. Default: 1 s.
    #[must_use]
    pub fn initial_delay(self, delay: Duration) -> Self {
        self.map(|backoff| backoff.initial_delay(delay))
    }

    /// Sets the longest delay; if the provider asks for a longer one, its error is returned. Default: 30 s.
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> Self {
        self.map(|backoff| backoff.max_delay(delay))
    }

    /// Sets which part of a delay is left to chance, from 0 to 1. Default: 1, all of it. The provider's own delay is always
    /// waited whole.
    #[must_use]
    pub fn jitter(self, part: f64) -> Self {
        self.map(|backoff| backoff.jitter(part))
    }

    /// The retries of a model's own: a layer around it counts them.
    pub(crate) fn of_model(retries: u32) -> Self {
        let mut layer = Self::new().retries(retries);
        layer.policy.tells_tries = true;
        layer
    }

    fn map(mut self, change: impl FnOnce(Backoff) -> Backoff) -> Self {
        self.policy.backoff = change(self.policy.backoff);
        self
    }

    /// Treats errors of these kinds in a way of their own, also those of which nobody said whether trying again may help.
    /// The failed attempts of a call are counted together, whatever their kinds; the last one's decides.
    #[must_use]
    pub fn on(mut self, kinds: impl IntoIterator<Item = ErrorKind>, backoff: Backoff) -> Self {
        self.policy.kinds.extend(kinds.into_iter().map(|kind| (kind, backoff)));
        self
    }

    /// Never tries again after errors of these kinds.
    #[must_use]
    pub fn never(self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        self.on(kinds, Backoff::new().retries(0))
    }

    /// Sets an allowance that all calls share, such as [`TpsBudget`](tower::retry::budget::TpsBudget): each answer pays in
    /// and each new attempt takes out, so that a provider in trouble is not asked several times as often as one that is
    /// well. Default: none.
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
