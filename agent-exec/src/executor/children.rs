//! Child runs that stopped after their caller's checkpoint was made.

use agent_core::{Result, RunCx, RunEnd};

use crate::engine::Opened;

/// Brings the checkpoint up to date with what a hook did, and with the child runs that it stopped. Where the application keeps
/// it stays as the hook said.
pub(super) fn reconcile_children(cx: &RunCx, end: &mut Result<RunEnd>) {
    let checkpoint = match end {
        Ok(end) => end.checkpoint_mut(),
        Err(e) => e.checkpoint_mut(),
    };
    if let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.ids.run_id == cx.ids().run_id) {
        let saved_as = checkpoint.saved_as.take();
        *checkpoint = cx.engine().log().at_rest();
        checkpoint.saved_as = saved_as;
    }
}
