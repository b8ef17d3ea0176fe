//! [`Kept`]: what keeps a container alive.

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

/// What a container runs first. It ends with its input, and all that runs in the container ends with it; a program that kills what reads the input
/// ends nothing. Meanwhile the shell waits, which also takes note of processes that have lost their parents.
pub(super) const FIRST: &str = "exec 3<&0; until cat <&3 >/dev/null & wait $!; do :; done";

/// The input of a container's first process, which ends when this is dropped, or when the application is gone.
pub(super) struct Kept(Mutex<Option<Held>>);

/// The input, and what reads the output.
type Held = (Pin<Box<dyn AsyncWrite + Send>>, AbortHandle);

impl Kept {
    pub(super) fn new(attached: AttachContainerResults) -> Self {
        let AttachContainerResults { mut output, input } = attached;
        // The first process says nothing; what an engine says all the same must not fill its buffers.
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
