//! [`HedgeLayer`]: tower layer that hedges slow calls.

use std::{sync::Arc, time::Duration};

use tower::Layer;

use super::{Hedge, latency::Slow};

/// Hedges slow calls of a model, or of an [embedder](crate::embed::LayeredEmbedder): makes a
/// second, identical call, and takes the one that answers first.
///
/// # Which one wins
///
/// The call that **produces output first** wins: with its first chunk if the call is streamed to a
/// listener, else with its complete answer. The other call is dropped at that moment, which closes
/// its connection, so that only the winner's chunks reach the sink. A call that has produced output
/// is no longer slow, however long its answer is.
///
/// A call that fails while the other is still silent loses; if both fail, the later error is
/// returned. A call that fails before it is slow is not repeated: that is the job of
/// [`RetryLayer`](crate::RetryLayer).
///
/// # Cost
///
/// A hedged call is billed twice. The usage of the dropped call is **unknown**, because its
/// provider never reports it: the answer's usage is the winner's alone. In a run with a
/// [`Budget`](agent_core::Budget) the second call reserves as much as the first, and the
/// reservation of the dropped call is booked in full; if the reservation would exceed a limit, the
/// second call is not made.
///
/// # Notes
///
/// * Each second call emits an [`EventKind::Hedge`](agent_core::EventKind::Hedge).
/// * Clones share the recorded latencies.
///
/// # Order
///
/// ```text
/// // right: inside the model, where both calls are one call of the run and its journal
/// Agent::builder("a", LayeredModel::new(model, HedgeLayer::after(five_seconds)))
/// // wrong: two calls of the run, each with its own reservation, one of which is never settled
/// Agent::builder("a", model).model_layer(HedgeLayer::after(five_seconds))
///
/// // right: each attempt is hedged
/// LayeredModel::new(model, (RetryLayer::new(), HedgeLayer::after(five_seconds)))
/// // wrong: a call that waits for its retry looks slow, and is hedged too early
/// LayeredModel::new(model, (HedgeLayer::after(five_seconds), RetryLayer::new()))
/// ```
///
/// # Differences from `tower::hedge`
///
/// That layer would pass the chunks of both calls to the sink, returns the first result even if it
/// is an error while the other call may still succeed, cannot wait for a fixed time, and requires
/// readiness for both calls before the first.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_llm::{HedgeLayer, LayeredModel, ScriptedModel, Turn};
///
/// let model = ScriptedModel::new([Turn::text("hello")]);
/// let after_five_seconds = LayeredModel::new(model.clone(), HedgeLayer::after(Duration::from_secs(5)));
/// let the_slowest_twentieth = LayeredModel::new(model, HedgeLayer::at_percentile(0.95));
/// ```
#[derive(Clone, Debug)]
pub struct HedgeLayer(Arc<Slow>);

impl HedgeLayer {
    /// Makes the second call when the first has produced no output for `delay`.
    pub fn after(delay: Duration) -> Self {
        Self(Arc::new(Slow::After(delay)))
    }

    /// Makes the second call when the first has been silent for longer than this fraction, from 0
    /// to 1, of the preceding calls: with 0.95 about one call in twenty. The last 128 calls are
    /// remembered; until there are 20, no call is hedged.
    ///
    /// Latency is the time to the first chunk of streamed calls with a listener, and to the
    /// complete answer of others, so use one layer for calls of one kind.
    pub fn at_percentile(part: f64) -> Self {
        Self(Arc::new(Slow::percentile(part)))
    }
}

impl<S> Layer<S> for HedgeLayer {
    type Service = Hedge<S>;

    fn layer(&self, inner: S) -> Hedge<S> {
        Hedge::new(self.0.clone(), inner)
    }
}
