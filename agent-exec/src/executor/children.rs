//! Child runs that stopped after the checkpoint of their caller was made.

use agent_core::{Result, RunCx, RunEnd};

use crate::engine::Opened;

/// Updates the checkpoint with the changes of a hook and with the child runs that the hook stopped.
/// `saved_as`, the location where the application stores the checkpoint, keeps the value that the
/// hook set.
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
