//! [`BreakerLayer`]: circuit breaker layer of one key.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use agent_core::{Error, ErrorKind, EventKind, Result, Retry, RunCx, event::CircuitState};
use tokio::time::Instant;
use tower::Layer;

use super::{
    Breaker,
    circuit::{Circuit, Outcome, Refused, Settings, Ticket},
    lock,
};
use crate::call::tell;

/// Circuit breaker layer for one key, created by [`CircuitBreaker`](super::CircuitBreaker). Clones
/// share the circuit.
#[derive(Clone)]
pub struct BreakerLayer {
    key: Arc<str>,
    circuit: Arc<Mutex<Circuit>>,
    settings: Arc<Settings>,
}

impl BreakerLayer {
    pub(super) fn new(key: Arc<str>, circuit: Arc<Mutex<Circuit>>, settings: Settings) -> Self {
        Self { key, circuit, settings: Arc::new(settings) }
    }

    /// Returns the key of the guarded model.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the state of the circuit.
    pub fn state(&self) -> CircuitState {
        lock(&self.circuit).state(Instant::now())
    }

    /// Requests permission to make a call.
    ///
    /// # Errors
    /// [`ErrorKind::Overloaded`] while the circuit refuses calls.
    pub(super) fn enter(&self, run: Option<&RunCx>) -> Result<Pass> {
        let ticket = self.change(run, Circuit::enter).map_err(|refused| self.refusal(refused))?;
        Ok(Pass { layer: self.clone(), run: run.cloned(), ticket: Some(ticket) })
    }

    fn refusal(&self, Refused { remaining, last }: Refused) -> Error {
        let until = match remaining {
            Some(remaining) => format!("for {} s more", remaining.as_secs_f64().ceil()),
            None => "until a first call has shown that it is well again".into(),
        };
        let message = format!("'{}' failed several times in a row ({last}): it is left alone {until}", self.key);
        Error::new(ErrorKind::Overloaded, message)
            .with_retry(Retry::Temporary(remaining))
            .with_context("circuit", &*self.key)
    }

    /// Applies `change` to the circuit, and emits an event if the state changed.
    fn change<T>(&self, run: Option<&RunCx>, change: impl FnOnce(&mut Circuit, Instant) -> T) -> T {
        let (result, turned) = {
            let (mut circuit, now) = (lock(&self.circuit), Instant::now());
            let era = circuit.era();
            let result = change(&mut circuit, now);
            (result, (circuit.era() != era).then(|| circuit.state(now)))
        };
        if let Some(state) = turned {
            tell(run, EventKind::Circuit { key: (*self.key).into(), state });
        }
        result
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Service = Breaker<S>;

    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker::new(self.clone(), inner)
    }
}

/// Permission to make one call. If dropped before the call ended, the permission is returned with
/// an unknown outcome.
pub(super) struct Pass {
    layer: BreakerLayer,
    /// Run that the call belongs to, if any.
    run: Option<RunCx>,
    ticket: Option<Ticket>,
}

impl Pass {
    /// Records the outcome of the call.
    pub(super) fn settle<T>(mut self, result: &Result<T>) {
        self.leave(match result {
            Ok(_) => Outcome::Answered,
            Err(e) if self.layer.settings.kinds.contains(&e.kind()) => Outcome::Failed(e.kind()),
            Err(_) => Outcome::Unknown,
        });
    }

    fn leave(&mut self, outcome: Outcome) {
        if let Some(ticket) = self.ticket.take() {
            let settings = &self.layer.settings;
            self.layer.change(self.run.as_ref(), |circuit, now| circuit.leave(ticket, outcome, now, settings));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.leave(Outcome::Unknown);
    }
}

impl fmt::Debug for BreakerLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerLayer")
            .field("key", &self.key)
            .field("state", &self.state())
            .field("settings", &self.settings)
            .finish()
    }
}
