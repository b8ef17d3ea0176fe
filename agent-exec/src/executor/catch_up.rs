//! Runs below that did not hand up in time where they stand.

use agent_core::{BackgroundRun, CallState, Checkpoint, EventKind, Phase, Result, RunCx, RunEnd, recover};

/// Brings the checkpoint at the top up to date if runs below are not at their end: they were dropped, since a cancelled call
/// has its tool's grace and no more, or are about to be. What they did since then only the journal knows; gone on with from
/// where they stood before, they would do it again in silence.
///
/// Those in the background are stopped by the hook that started them: only when the run `is_over` is it known which are late.
pub(super) async fn catch_up(cx: &RunCx, end: &mut Result<RunEnd>, is_over: bool) {
    let hub = cx.emitter().hub();
    if cx.ids().depth > 0 || !hub.has_open_below() {
        return;
    }
    let checkpoint = match end {
        Ok(end) => end.checkpoint_mut(),
        Err(e) => e.checkpoint_mut(),
    };
    let Some(checkpoint) = checkpoint else { return };
    let journal = hub.journal(); // from here on nothing is held back from it
    if cx.log().commit().await.is_err() {
        return; // the run's end says so
    }
    match recover(&**journal, &cx.ids().session, &cx.ids().agent_id).await {
        Ok(Some(mut known)) => {
            let late = std::mem::take(&mut known.background);
            adopt(checkpoint, known);
            if is_over {
                adopt_background(checkpoint, late);
            }
        }
        // A run that was gone on with from a checkpoint, and has no store: its journal does not know how it began.
        Ok(None) => {
            let message =
                "sub-agents did not hand up in time where they stand: the checkpoint has them as they stood before";
            cx.emit(EventKind::Warning { message: message.into() });
        }
        Err(e) => *end = Err(e),
    }
}

/// Takes over what the journal knows of the runs below.
fn adopt(checkpoint: &mut Checkpoint, known: Checkpoint) {
    (checkpoint.usage, checkpoint.tree_usage) = (known.usage, known.tree_usage);
    (checkpoint.spent, checkpoint.sub_agents) = (known.spent, known.sub_agents);
    if let (Phase::Tools(turn), Phase::Tools(known)) = (&mut checkpoint.phase, known.phase) {
        for (call, known) in turn.calls.iter_mut().zip(known.calls) {
            let is_open = matches!(call.state, CallState::Suspended { .. });
            if is_open && let CallState::Suspended { child: child @ Some(_) } = known.state {
                call.state = CallState::Suspended { child };
            }
        }
    }
}

fn adopt_background(checkpoint: &mut Checkpoint, mut late: Vec<BackgroundRun>) {
    late.retain(|late| checkpoint.background.iter().all(|known| known.run != late.run));
    checkpoint.background.extend(late);
}
