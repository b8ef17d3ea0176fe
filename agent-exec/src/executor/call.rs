//! One call through its stack, and how it ended.

use std::sync::Arc;

use agent_core::{Checkpoint, ErrorKind, Result, ToolOutput, ToolRequest};
use tower::ServiceExt;

use super::ToolEntry;

/// How a call ended.
pub(super) enum CallEnd {
    Done(ToolOutput),
    /// It waits for an answer; a sub-agent's call says where the sub-agent stands.
    Suspended(Option<Box<Checkpoint>>),
    /// It was cancelled with the run.
    Cancelled(Option<Box<Checkpoint>>),
    /// It fails the run.
    Failed(agent_core::Error),
}

/// Runs a call until it ends or the run is cancelled; then it has the tool's grace to hand up its state.
pub(super) async fn run(entry: Arc<ToolEntry>, request: ToolRequest) -> CallEnd {
    let cancel = request.cx.cancellation().clone();
    let call = entry.service.clone().oneshot(request);
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
