//! Runs below that stopped after their caller's checkpoint was made.

use agent_core::{Result, RunCx, RunEnd};

use crate::engine::Opened;

/// Brings the checkpoint up to date with the runs below that were in the background: they were stopped by the hook that started
/// them, or dropped, and what they did and ask since, the run's state knows.
pub(super) fn reconcile_children(cx: &RunCx, end: &mut Result<RunEnd>) {
    let checkpoint = match end {
        Ok(end) => end.checkpoint_mut(),
        Err(e) => e.checkpoint_mut(),
    };
    if let Some(checkpoint) = checkpoint {
        let now = cx.engine().log().at_rest();
        (checkpoint.questions, checkpoint.background) = (now.questions, now.background);
    }
}
