//! Selection of the winner among two concurrent calls.

use std::sync::{Arc, OnceLock};

use agent_core::{Chunk, Error, ErrorKind, Result};
use tokio::time::Instant;

use crate::call::Call;

/// One of the two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

/// Passes chunks of the call that emits first, and makes the other fail.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<OnceLock<(Side, Instant)>>);

impl Gate {
    /// Wraps the request of the call `side`: its first chunk makes it the winner, unless the other
    /// was first.
    pub(super) fn guard<R: Call>(&self, req: &R, side: Side) -> R {
        req.clone().map_model(|mut req| {
            if !req.sink.is_idle() {
                let gate = self.clone();
                req.sink = req.sink.with_guard(move |_: &Chunk| gate.pass(side));
            }
            req
        })
    }

    fn pass(&self, side: Side) -> Result<()> {
        if self.claim(side) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "the same call made a second time was faster"))
    }

    /// Makes `side` the winner; returns false if the other call has already won.
    pub(super) fn claim(&self, side: Side) -> bool {
        self.0.get_or_init(|| (side, Instant::now())).0 == side
    }

    /// Returns the winner, and when it won; `None` if neither has produced output.
    pub(super) fn heard(&self) -> Option<(Side, Instant)> {
        self.0.get().copied()
    }
}
