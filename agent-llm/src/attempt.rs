//! What layers that call a model more than once have in common.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agent_core::{Chunk, ChunkSink, Error, ErrorKind, ModelInfo, ModelRequest, Result, RunCx};

/// Whether readers show something that a failed attempt said.
#[derive(Default)]
pub(crate) struct Spoken(Arc<AtomicBool>);

impl Spoken {
    /// The request with a sink that notes chunks. Where nobody listens to them, none are made for this either.
    pub(crate) fn listen(&self, mut req: ModelRequest) -> ModelRequest {
        if !req.sink.is_idle() {
            let spoken = self.0.clone();
            // After a restart from further inside there is nothing left to take back.
            req.sink = req.sink.with_observer(move |c| spoken.store(!matches!(c, Chunk::Restart), Ordering::Relaxed));
        }
        req
    }

    /// True if readers show something.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Tells readers to drop what was said, if anything was.
    ///
    /// # Errors
    /// If a layer ends the call.
    pub(crate) fn take_back(&self, sink: &ChunkSink) -> Result<()> {
        if self.0.swap(false, Ordering::Relaxed) {
            sink.push(Chunk::Restart)?;
        }
        Ok(())
    }
}

/// Gives `error` back, or an error that says that the run was cancelled after it.
pub(crate) fn unless_cancelled(cx: &RunCx, error: Error) -> Result<Error> {
    if cx.cancellation().is_cancelled() { Err(cancelled(error)) } else { Ok(error) }
}

/// The run was cancelled after a call had failed with `error`.
pub(crate) fn cancelled(error: Error) -> Error {
    Error::new(ErrorKind::Cancelled, "the run was cancelled before the call could be tried again").with_source(error)
}

/// What a model is called in events and errors: its provider, if it has one, and its name.
pub(crate) fn label(info: &ModelInfo) -> String {
    match info.provider.as_str() {
        "" => info.name.clone(),
        provider => format!("{provider}/{}", info.name),
    }
}
