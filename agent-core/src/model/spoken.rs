//! What a failed attempt has already shown.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::ModelRequest;
use crate::{
    error::Result,
    llm::{Chunk, ChunkSink},
};

/// Whether readers show something that an attempt at a model call said: for layers that call a model more than once.
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
    /// The request with a sink that notes chunks. Where nobody listens to them, none are made for this either.
    pub fn listen(&self, mut req: ModelRequest) -> ModelRequest {
        if !req.sink.is_idle() {
            let spoken = self.0.clone();
            // After a restart from further inside there is nothing left to take back.
            req.sink = req.sink.with_observer(move |c| spoken.store(!matches!(c, Chunk::Restart), Ordering::Relaxed));
        }
        req
    }

    /// True if readers show something.
    pub fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Tells readers to drop what was said, if anything was.
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
