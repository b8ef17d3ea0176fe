//! One call through its stack, and how it ended.

use std::{panic::AssertUnwindSafe, sync::Arc};

use agent_core::{Checkpoint, Error, ErrorKind, Result, ToolOutput, ToolRequest};
use futures::FutureExt;

use super::ToolEntry;

/// How a call ended.
pub(super) enum CallEnd {
    Done(ToolOutput),
    /// It waits for an answer; a sub-agent's call says where the sub-agent stands.
    Suspended(Option<Box<Checkpoint>>),
    /// It was cancelled with the run.
    Cancelled(Option<Box<Checkpoint>>),
    /// It fails the run.
    Failed(Error),
}

/// Runs a call until it ends or the run is cancelled; then it has the tool's grace to hand up its state.
pub(super) async fn run(entry: Arc<ToolEntry>, request: ToolRequest) -> CallEnd {
    let cancel = request.cx.cancellation().clone();
    if cancel.is_cancelled() {
        return CallEnd::Cancelled(None); // it was waiting for its turn, and is not to begin now
    }
    // A panic of the tool is told to the model further in. One of a hook or a layer fails the run, not its siblings' results.
    let panicked = |_| Err(Error::new(ErrorKind::Unexpected, "a hook or a layer around a tool panicked"));
    let call = AssertUnwindSafe(entry.service.run(request)).catch_unwind();
    let call = call.map(|result| result.unwrap_or_else(panicked));
    tokio::pin!(call);
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        result = &mut call => return ended(result, false),
    }
    let grace = entry.options.cancel_grace;
    if grace.is_zero() {
        return CallEnd::Cancelled(None);
    }
    match tokio::time::timeout(grace, call).await {
        Ok(result) => ended(result, true),
        Err(_) => CallEnd::Cancelled(None),
    }
}

fn ended(result: Result<ToolOutput>, cancelled: bool) -> CallEnd {
    match result {
        Ok(output) => CallEnd::Done(output),
        Err(e) if e.kind() == ErrorKind::Interrupted => CallEnd::Suspended(e.into_suspension().1),
        Err(e) if e.kind() == ErrorKind::Cancelled && cancelled => CallEnd::Cancelled(e.into_suspension().1),
        Err(e) if e.kind() == ErrorKind::Cancelled => CallEnd::Done(ToolOutput::error(e.message().to_owned())),
        Err(_) if cancelled => CallEnd::Cancelled(None),
        Err(e) => CallEnd::Failed(e),
    }
}
