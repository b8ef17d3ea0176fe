//! [`HedgeLayer`].

use std::{sync::Arc, time::Duration};

use tower::Layer;

use super::{Hedge, latency::Slow};

/// Makes a call of a model, or of an [embedder](crate::embed::LayeredEmbedder), a second time when the first is slow, and takes the one that answers first.
///
/// # Which one wins
///
/// The one that is **heard first**: with its first chunk where somebody looks at chunks (a streamed call that is watched),
/// else with its complete answer. The other is dropped at that moment, which closes its connection, so that only the
/// winner's chunks reach the sink. A call that has spoken is not slow any more, however long its answer is.
///
/// A call that fails while the other is still silent loses; if both fail, the later error is returned. A call that fails
/// before it is slow is not made again: that is [`RetryLayer`](crate::RetryLayer)'s business.
///
/// # What it costs
///
/// A hedged call is paid for twice. What the dropped one used is **unknown**, since its provider never says: the answer's
/// usage is the winner's alone. In a run with a [`Budget`](agent_core::Budget) as much is reserved for the second call
/// as for the first, and booked for the one that was dropped; if that would pass a cap, the call is not made a second time.
///
/// # Notes
///
/// * Each second call is announced by an [`EventKind::Hedge`](agent_core::EventKind::Hedge).
/// * Clones share what they have learned of the latencies.
///
/// # Order
///
/// ```text
/// // right: inside the model, where both calls are one call of the run and its journal
/// Agent::builder("a", LayeredModel::new(model, HedgeLayer::after(five_seconds)))
/// // wrong: two calls of the run, each with a reservation of its own, one of which never ends
/// Agent::builder("a", model).model_layer(HedgeLayer::after(five_seconds))
///
/// // right: each attempt is hedged
/// LayeredModel::new(model, (RetryLayer::new(), HedgeLayer::after(five_seconds)))
/// // wrong: a call that waits to be tried again looks slow, and is made again before its time
/// LayeredModel::new(model, (HedgeLayer::after(five_seconds), RetryLayer::new()))
/// ```
///
/// # Differences from `tower::hedge`
///
/// That layer would let the chunks of both calls into the sink, returns the first result even if it is an error while the
/// other call may still answer, cannot wait for a fixed time, and asks for readiness of both calls before the first.
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
    /// Makes the second call when the first has been silent for `delay`.
    pub fn after(delay: Duration) -> Self {
        Self(Arc::new(Slow::After(delay)))
    }

    /// Makes the second call when the first has been silent for longer than this part of the calls before it, from 0 to 1:
    /// with 0.95 about one call in twenty. The last 128 calls are remembered; until there are 20, none is made twice.
    ///
    /// Watched calls are silent until their first chunk and others until their answer is complete, so give a layer calls of
    /// one sort.
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
