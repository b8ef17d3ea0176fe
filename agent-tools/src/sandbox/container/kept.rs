//! [`Kept`]: connection that keeps a container alive.

use std::{
    fmt,
    pin::Pin,
    sync::{Mutex, PoisonError},
};

use bollard::container::AttachContainerResults;
use futures::StreamExt;
use tokio::{
    io::AsyncWrite,
    task::{AbortHandle, spawn},
};

/// Init command of a container. It exits with its input, and everything in the container ends with
/// it; killing the process that reads the input does not end it. Meanwhile the shell waits, and
/// reaps orphaned processes.
pub(super) const FIRST: &str = "exec 3<&0; until cat <&3 >/dev/null & wait $!; do :; done";

/// Standard input of a container's init process, which ends when this is dropped, or when the
/// application exits.
pub(super) struct Kept(Mutex<Option<Held>>);

/// Input, and task that reads the output.
type Held = (Pin<Box<dyn AsyncWrite + Send>>, AbortHandle);

impl Kept {
    pub(super) fn new(attached: AttachContainerResults) -> Self {
        let AttachContainerResults { mut output, input } = attached;
        // The init process writes nothing; unexpected output must not fill the engine's buffers.
        let reading = spawn(async move { while output.next().await.is_some() {} });
        Self(Mutex::new(Some((input, reading.abort_handle()))))
    }

    pub(super) fn let_go(&self) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((input, reading)) = kept {
            drop(input);
            reading.abort();
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}
