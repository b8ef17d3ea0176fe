//! Runs one tool call through its stack.

use std::{panic::AssertUnwindSafe, sync::Arc};

use agent_core::{Error, ErrorKind, Result, RunCx, ToolOutput, ToolRequest};
use futures::FutureExt;

use super::{Deadline, ToolEntry};
use crate::engine::Opened;

/// Outcome of a call.
pub(super) enum CallEnd {
    Done(ToolOutput),
    /// The call waits for an answer to a question.
    Suspended,
    /// The call was cancelled together with the run.
    Cancelled,
    /// The error fails the run.
    Failed(Error),
}

/// Runs a call until it completes, its deadline passes, or the run is cancelled. After the latter
/// two, the tool has its cancel grace to return its state.
pub(super) async fn run(entry: Arc<ToolEntry>, request: ToolRequest, deadline: Option<Deadline>) -> CallEnd {
    let (cx, call_id) = (request.cx.clone(), request.call.id.clone());
    let cancel = cx.cancellation();
    if cancel.is_cancelled() {
        return CallEnd::Cancelled; // cancelled while queued: do not start it
    }
    // Inner layers report a tool's panic to the model, and attribute a panic of a hook or layer to
    // its name. Any other panic fails the run, but not the results of sibling calls.
    let panicked = |panic: Box<dyn std::any::Any + Send>| {
        Err(Error::from_panic(ErrorKind::Unexpected, "what is around a tool", panic))
    };
    let call = AssertUnwindSafe(async { entry.service.run(request).await }).catch_unwind();
    let call = call.map(|result| result.unwrap_or_else(panicked));
    tokio::pin!(call);
    let late = tokio::select! {
        biased;
        result = &mut call => return ended(result, &cx, (&call_id, entry.options.delegates)),
        () = cancel.cancelled() => None,
        late = Deadline::passed(deadline) => Some(late),
    };
    let grace = entry.options.cancel_grace;
    let result = match grace.is_zero() {
        true => None,
        false => tokio::time::timeout(grace, call).await.ok(),
    };
    match (late, result) {
        (None, Some(result)) => ended(result, &cx, (&call_id, entry.options.delegates)),
        (None, None) => CallEnd::Cancelled,
        (Some(late), None) => CallEnd::Done(ToolOutput::error(late.message())),
        // A sub-agent whose deadline passed together with its caller's reports the timeout itself.
        (Some(late), Some(result)) => match ended(result, &cx, (&call_id, entry.options.delegates)) {
            CallEnd::Failed(e) if e.kind() == ErrorKind::Timeout => CallEnd::Done(ToolOutput::error(late.message())),
            end => end,
        },
    }
}

fn ended(result: Result<ToolOutput>, cx: &RunCx, (call_id, delegates): (&str, bool)) -> CallEnd {
    let cancel = cx.cancellation();
    match result {
        Ok(output) => CallEnd::Done(output),
        Err(e) if e.kind() == ErrorKind::Interrupted => CallEnd::Suspended,
        Err(e) if e.kind() == ErrorKind::Cancelled && cancel.is_cancelled() => CallEnd::Cancelled,
        Err(e) if e.kind() == ErrorKind::Cancelled => CallEnd::Done(ToolOutput::error(e.message().to_owned())),
        Err(_) if cancel.is_cancelled() => CallEnd::Cancelled,
        // The budget is exhausted. The run continues so that it can report this with every call
        // answered.
        Err(e) if e.kind() == ErrorKind::Limit && e.context("budget").is_some() => {
            let what = if cx.engine().log().has_begun(call_id, delegates) { "Cut off" } else { "Not run" };
            CallEnd::Done(ToolOutput::error(format!("{what}: {}", e.message())))
        }
        Err(e) => CallEnd::Failed(e),
    }
}
