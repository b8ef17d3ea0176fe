//! Circuit breaker for failing models: [`CircuitBreaker`].

mod circuit;
mod layer;
mod service;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{ErrorKind, ModelInfo, event::CircuitState};
use tokio::time::Instant;

use self::circuit::{Circuit, Settings};
pub use self::{layer::BreakerLayer, service::Breaker};
use crate::attempt::label;

/// Circuit breaker with one circuit per key: after several consecutive failures, calls of a model,
/// or of an [embedder](crate::embed::LayeredEmbedder), are refused for a while.
///
/// An open circuit refuses calls at once with an [`Overloaded`](ErrorKind::Overloaded) error that
/// carries the remaining time, so that an outer [`Failover`](crate::Failover) moves on without
/// waiting for a provider that is down. After the open time the circuit is half open: one call goes
/// through as a probe, and all others are refused until it ends. If the probe succeeds the circuit
/// closes; if it fails the open time starts again.
///
/// Clones share their circuits. By convention a key is `provider/model`; all layers with the same
/// key share one circuit, across agents.
///
/// # Default
///
/// Three consecutive failures open a circuit for 60 s. Failures are rate limits, overload,
/// timeouts, broken connections, truncated or malformed answers and the provider's internal errors.
/// Other errors, and dropped calls, say nothing about a model's health: they neither count as a
/// failure nor reset the counter.
///
/// # Notes
///
/// * Each state change emits an [`EventKind::Circuit`](agent_core::EventKind::Circuit) on the run
///   whose call caused it.
/// * Calls that began before the circuit opened do not count if they end after it.
///
/// # Order
///
/// ```text
/// // right: a call that fails after all its attempts is one failure; open circuits refuse at once
/// LayeredModel::new(model, (breaker.layer("openai/gpt-5"), RetryLayer::new(), TimeoutLayer::new(minute)))
/// // wrong: the retry waits for the circuit to close
/// LayeredModel::new(model, (RetryLayer::new(), breaker.layer("openai/gpt-5")))
/// // wrong: the timeout drops slow calls, which the breaker does not count
/// LayeredModel::new(model, (TimeoutLayer::new(minute), breaker.layer("openai/gpt-5")))
/// ```
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::Model;
/// use agent_llm::{CircuitBreaker, Failover, LayeredModel, ModelBuilder};
///
/// let breaker = CircuitBreaker::new().failures(5).open_for(Duration::from_secs(30));
/// let guarded = |model: ModelBuilder| -> agent_core::Result<LayeredModel> {
///     let model = model.api_key("sk-..").retries(0).build()?;
///     let layer = breaker.layer_for(&model.info());
///     Ok(LayeredModel::new(model, layer))
/// };
/// let large = guarded(agent_llm::model("openai:gpt-5"))?;
/// let small = guarded(agent_llm::model("openai:gpt-5-mini"))?;
/// let model = Failover::builder(large).fallback(small).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct CircuitBreaker {
    settings: Settings,
    circuits: Arc<Mutex<Circuits>>,
}

type Circuits = HashMap<Arc<str>, Arc<Mutex<Circuit>>>;

impl CircuitBreaker {
    /// Returns a circuit breaker with the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of consecutive failures that open a circuit, at least one. Default: 3.
    #[must_use]
    pub fn failures(mut self, most: u32) -> Self {
        self.settings.failures = most;
        self
    }

    /// Sets the time a circuit stays open before a probe. Default: 60 s.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.settings.open_for = time;
        self
    }

    /// Counts errors of these kinds as failures, too.
    #[must_use]
    pub fn on(mut self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        self.settings.kinds.extend(kinds);
        self
    }

    /// Does not count errors of these kinds.
    #[must_use]
    pub fn never(mut self, kinds: impl IntoIterator<Item = ErrorKind>) -> Self {
        for kind in kinds {
            self.settings.kinds.remove(&kind);
        }
        self
    }

    /// Returns the layer of `key`, with the current settings.
    pub fn layer(&self, key: impl Into<Arc<str>>) -> BreakerLayer {
        let key = key.into();
        let circuit = self.circuits().entry(key.clone()).or_default().clone();
        BreakerLayer::new(key, circuit, self.settings.clone())
    }

    /// Returns the layer of a model, whose key is its provider and its name: `provider/name`.
    pub fn layer_for(&self, model: &ModelInfo) -> BreakerLayer {
        self.layer(label(model))
    }

    /// Returns the state of the circuit of `key`: closed if it was never used.
    pub fn state(&self, key: &str) -> CircuitState {
        let circuit = self.circuits().get(key).cloned();
        circuit.map_or(CircuitState::Closed, |circuit| lock(&circuit).state(Instant::now()))
    }

    fn circuits(&self) -> MutexGuard<'_, Circuits> {
        lock(&self.circuits)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.circuits().keys().cloned().collect();
        f.debug_struct("CircuitBreaker").field("settings", &self.settings).field("keys", &keys).finish()
    }
}
