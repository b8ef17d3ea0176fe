//! Blocking work, off the threads that drive runs.

use std::panic::resume_unwind;

use agent_core::{Error, ErrorKind, Result};
use tokio::task::{JoinError, spawn_blocking};

/// Runs `work` on a thread for blocking work. A panic resumes in the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let stopped = |e: JoinError| match e.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(e) => Error::new(ErrorKind::Cancelled, "the runtime is shutting down").with_source(e),
    };
    spawn_blocking(work).await.map_err(stopped)?
}
