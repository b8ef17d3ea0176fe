//! [`Heard`]: tracks whether a response passed the sink.

use std::sync::atomic::{AtomicBool, Ordering};

use agent_core::{ModelRequest, PerRun, RunCx};

/// Records whether the response of the current call passed the sink and was rewritten there. A
/// response that a middleware returned without calling the model did not.
#[derive(Debug, Default)]
pub(crate) struct Heard(PerRun<AtomicBool>);

impl Heard {
    /// Records that the sink has a rewriter.
    pub(crate) fn listen(&self, req: &ModelRequest) {
        self.0.of(&req.cx, AtomicBool::default).store(true, Ordering::Relaxed);
    }

    /// Returns whether the sink had a rewriter, and resets the record.
    pub(crate) fn take(&self, cx: &RunCx) -> bool {
        self.0.end(cx).is_some_and(|heard| heard.load(Ordering::Relaxed))
    }
}
