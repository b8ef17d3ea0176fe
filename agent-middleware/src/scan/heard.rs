//! [`Heard`].

use std::sync::atomic::{AtomicBool, Ordering};

use agent_core::{ModelRequest, PerRun, RunCx};

/// Whether the answer of the call under way came through the sink, and was rewritten there: one that a middleware gave in
/// the model's place did not.
#[derive(Debug, Default)]
pub(crate) struct Heard(PerRun<AtomicBool>);

impl Heard {
    /// The sink is listened to.
    pub(crate) fn listen(&self, req: &ModelRequest) {
        self.0.of(&req.cx, AtomicBool::default).store(true, Ordering::Relaxed);
    }

    /// True if it was; from now on it is not.
    pub(crate) fn take(&self, cx: &RunCx) -> bool {
        self.0.end(cx).is_some_and(|heard| heard.load(Ordering::Relaxed))
    }
}
