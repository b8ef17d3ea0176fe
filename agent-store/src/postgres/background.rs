//! Background thread with its own runtime.

use std::thread::{self, JoinHandle};

use agent_core::{Error, ErrorKind, Result};
use tokio::{
    runtime::{Builder, Handle},
    sync::{mpsc, oneshot},
};

use crate::error::thread_ended;

/// Background thread for one kind of work, with its own runtime that drives all connections: a busy
/// application cannot delay renewals. Dropping it waits until the queue is empty.
pub(super) struct Background<W> {
    queue: Option<mpsc::UnboundedSender<W>>,
    runtime: Handle,
    handle: Option<JoinHandle<()>>,
}

impl<W: Send + 'static> Background<W> {
    /// Starts the thread. The thread is ready when `begin` completes, and ends when `run` does.
    pub(super) async fn start<S, B, R>(
        name: &str,
        begin: impl FnOnce() -> B + Send + 'static,
        run: impl FnOnce(S, mpsc::UnboundedReceiver<W>) -> R + Send + 'static,
    ) -> Result<Self>
    where
        B: Future<Output = Result<S>>,
        R: Future<Output = ()>,
    {
        let cannot = |e| {
            Error::new(ErrorKind::Store, "the store's thread cannot be started: raise the limit of threads")
                .with_source(e)
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let (queue, work) = mpsc::unbounded_channel();
        let driver = runtime.handle().clone();
        let (ready, started) = oneshot::channel();
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async move {
                match begin().await {
                    Err(e) => drop(ready.send(Err(e))),
                    Ok(state) => {
                        drop(ready.send(Ok(())));
                        run(state, work).await;
                    }
                }
            });
        });
        let thread = Self { queue: Some(queue), runtime: driver, handle: Some(spawned.map_err(cannot)?) };
        started.await.map_err(|_| thread_ended())??;
        Ok(thread)
    }
}

impl<W> Background<W> {
    pub(super) fn push(&self, work: W) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(thread_ended)?;
        queue.send(work).map_err(|_| thread_ended())
    }

    pub(super) fn queue(&self) -> Result<mpsc::UnboundedSender<W>> {
        self.queue.clone().ok_or_else(thread_ended)
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl<W> Drop for Background<W> {
    fn drop(&mut self) {
        self.queue = None;
        // The last handle may be dropped in a task that the thread itself wakes.
        if let Some(handle) = self.handle.take()
            && handle.thread().id() != thread::current().id()
            && handle.join().is_err()
        {
            tracing::error!("the store's thread panicked; what it had not acknowledged is lost");
        }
    }
}
