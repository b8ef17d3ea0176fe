//! Tracking of chunks that a failed attempt has already emitted.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::ModelRequest;
use crate::{
    error::Result,
    llm::{Chunk, ChunkSink},
};

/// Tracks whether readers display chunks of an attempt at a model call, for layers that call a
/// model more than once.
///
/// ```
/// use agent_core::{Chunk, ModelRequest, ModelResponse, ModelService, Result, model::Spoken};
///
/// async fn twice(model: ModelService, req: ModelRequest) -> Result<ModelResponse> {
///     let spoken = Spoken::default();
///     match model.run(spoken.listen(req.clone())).await {
///         Err(e) if e.is_retryable() => {
///             spoken.take_back(&req.sink)?;
///             model.run(req).await
///         }
///         answered => answered,
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Spoken(Arc<AtomicBool>);

impl Spoken {
    /// Returns the request with a sink that tracks chunks. If the sink has no readers, no chunks
    /// are produced for this.
    pub fn listen(&self, mut req: ModelRequest) -> ModelRequest {
        if !req.sink.is_idle() {
            let spoken = self.0.clone();
            // After a restart by an inner layer there is nothing to retract.
            req.sink = req.sink.with_observer(move |c| spoken.store(!matches!(c, Chunk::Restart), Ordering::Relaxed));
        }
        req
    }

    /// True if readers display chunks of the attempt.
    pub fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Tells readers to discard the chunks of the attempt, if there were any.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub fn take_back(&self, sink: &ChunkSink) -> Result<()> {
        if self.0.swap(false, Ordering::Relaxed) {
            sink.push(Chunk::Restart)?;
        }
        Ok(())
    }
}
