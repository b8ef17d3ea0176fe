//! Parses untrusted documents on dedicated threads with a deadline.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use agent_core::{Error, ErrorKind, Result, Retry};
use tokio::sync::{Semaphore, oneshot};

/// Stack size of a thread in bytes: parsers recurse as deep as their input, up to the configured
/// limits.
const STACK: usize = 32 << 20;

/// Maximum of concurrent threads.
const MOST: usize = 2;

/// Runs work that may take long, panic, or use much stack.
#[derive(Clone, Debug)]
pub(crate) struct ParserPool {
    free: Arc<Semaphore>,
    longest: Duration,
}

impl ParserPool {
    /// Creates a pool whose work may take `longest`; the work receives its deadline and must end by
    /// then.
    pub(crate) fn new(longest: Duration) -> Self {
        Self { free: Arc::new(Semaphore::new(MOST)), longest }
    }

    /// Runs `work`. If the caller is dropped, the thread ends at its deadline, and occupies a slot
    /// until then.
    ///
    /// # Errors
    /// Errors of the work; of kind [`Tool`](ErrorKind::Tool) if the work panicked. The panic
    /// message is only logged.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(Instant) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.free.clone().acquire_owned().await.expect("the semaphore is never closed");
        let (done, result) = oneshot::channel();
        let longest = self.longest;
        let run = move || {
            let worked = catch_unwind(AssertUnwindSafe(|| work(Instant::now() + longest)));
            drop(permit);
            let worked = worked.unwrap_or_else(|panic| {
                let broken = format!("{what} is damaged in a way that its reader does not bear");
                Err(Error::from_panic(ErrorKind::Tool, what, panic).map_message(|_| broken))
            });
            let _ = done.send(worked);
        };
        let busy = |e| Error::tool("the machine has no thread left").with_retry(Retry::Temporary(None)).with_source(e);
        thread::Builder::new().name("agent-documents".to_owned()).stack_size(STACK).spawn(run).map_err(busy)?;
        result.await.map_err(|_| Error::new(ErrorKind::Unexpected, "a thread ended without a result"))?
    }
}

/// Returns an error if the deadline has passed.
pub(crate) fn in_time(end: Instant, what: &str) -> Result<()> {
    if Instant::now() < end { Ok(()) } else { Err(Error::tool(format!("{what} takes too long to read"))) }
}
