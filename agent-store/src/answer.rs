//! What a thread is asked and answers.

use agent_core::{BoxFuture, Result};
use tokio::sync::oneshot;

use crate::error::thread_ended;

/// Hands work to a thread at once, by `push`, with the place where its answer goes; the future is the answer.
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
