//! Requests to a worker thread.

use agent_core::{BoxFuture, Result};
use tokio::sync::oneshot;

use crate::error::thread_ended;

/// Enqueues a request on a thread immediately, by `push` with the reply channel; the future
/// resolves to the reply.
pub(crate) fn ask<T: Send + 'static>(
    push: impl FnOnce(oneshot::Sender<Result<T>>) -> Result<()>,
) -> BoxFuture<'static, Result<T>> {
    let (reply, answer) = oneshot::channel();
    let taken = push(reply);
    Box::pin(async move {
        taken?;
        answer.await.map_err(|_| thread_ended())?
    })
}
