//! Runs below that did not hand up in time where they stand.

use crate::engine::Opened;
use agent_core::{
    Checkpoint, Result, RunCx, RunEnd,
    engine::BackgroundRun,
    run::checkpoint::{CallState, Phase, RunState},
};

/// Brings the checkpoint up to date with the runs below that were dropped, since a cancelled call has its tool's grace and no
/// more: what they did, their states know. Gone on with from where they stood before, they would do it again in silence.
///
/// Those in the background are stopped by the hook that started them: only when the run `is_over` is it known which are late.
pub(super) fn reconcile_children(cx: &RunCx, end: &mut Result<RunEnd>, is_over: bool) {
    let checkpoint = match end {
        Ok(end) => end.checkpoint_mut(),
        Err(e) => e.checkpoint_mut(),
    };
    let Some(checkpoint) = checkpoint else { return };
    let now = cx.engine().log().at_rest(checkpoint.phase.clone());
    adopt(checkpoint, now.phase);
    if is_over {
        adopt_background(checkpoint, now.background);
    }
}

/// Takes over where the sub-agents of open calls stand now.
fn adopt(checkpoint: &mut Checkpoint, now: Phase) {
    let (Phase::Tools(turn), Phase::Tools(now)) = (&mut checkpoint.phase, now) else { return };
    for (call, now) in turn.calls.iter_mut().zip(now.calls) {
        if let CallState::Suspended { child } = &mut call.state
            && let CallState::Suspended { child: Some(newer) } = now.state
            && is_newer(child.as_deref(), &newer)
        {
            *child = Some(newer);
        }
    }
}

/// True if a run went on from where it was handed up, or was not handed up at all.
fn is_newer(handed_up: Option<&RunState>, now: &RunState) -> bool {
    handed_up.is_none_or(|handed_up| handed_up.attempt != now.attempt)
}

fn adopt_background(checkpoint: &mut Checkpoint, mut late: Vec<BackgroundRun>) {
    late.retain(|late| checkpoint.background.iter().all(|known| known.run != late.run));
    checkpoint.background.extend(late);
}
