//! One call through its stack, and how it ended.

use std::{panic::AssertUnwindSafe, sync::Arc};

use agent_core::{Error, ErrorKind, Result, ToolOutput, ToolRequest};
use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{Deadline, ToolEntry};

/// How a call ended.
pub(super) enum CallEnd {
    Done(ToolOutput),
    /// It waits for an answer.
    Suspended,
    /// It was cancelled with the run.
    Cancelled,
    /// It fails the run.
    Failed(Error),
}

/// Runs a call until it ends, it is too late, or the run is cancelled; then it has the tool's grace to hand up its state.
pub(super) async fn run(entry: Arc<ToolEntry>, request: ToolRequest, deadline: Option<Deadline>) -> CallEnd {
    let cx = request.cx.clone();
    let cancel = cx.cancellation();
    if cancel.is_cancelled() {
        return CallEnd::Cancelled; // it was waiting for its turn, and is not to begin now
    }
    // A panic of the tool is told to the model further in, and one of a hook or a layer has its name. Any other fails the run,
    // and not its siblings' results.
    let panicked = |panic: Box<dyn std::any::Any + Send>| {
        Err(Error::from_panic(ErrorKind::Unexpected, "what is around a tool", panic))
    };
    let call = AssertUnwindSafe(async { entry.service.run(request).await }).catch_unwind();
    let call = call.map(|result| result.unwrap_or_else(panicked));
    tokio::pin!(call);
    let late = tokio::select! {
        biased;
        result = &mut call => return ended(result, cancel),
        () = cancel.cancelled() => None,
        late = Deadline::passed(deadline) => Some(late),
    };
    let grace = entry.options.cancel_grace;
    let result = match grace.is_zero() {
        true => None,
        false => tokio::time::timeout(grace, call).await.ok(),
    };
    match (late, result) {
        (None, Some(result)) => ended(result, cancel),
        (None, None) => CallEnd::Cancelled,
        (Some(late), None) => CallEnd::Done(ToolOutput::error(late.message())),
        // A sub-agent's time was up with its caller's, and it says so itself.
        (Some(late), Some(result)) => match ended(result, cancel) {
            CallEnd::Failed(e) if e.kind() == ErrorKind::Timeout => CallEnd::Done(ToolOutput::error(late.message())),
            end => end,
        },
    }
}

fn ended(result: Result<ToolOutput>, cancel: &CancellationToken) -> CallEnd {
    match result {
        Ok(output) => CallEnd::Done(output),
        Err(e) if e.kind() == ErrorKind::Interrupted => CallEnd::Suspended,
        Err(e) if e.kind() == ErrorKind::Cancelled && cancel.is_cancelled() => CallEnd::Cancelled,
        Err(e) if e.kind() == ErrorKind::Cancelled => CallEnd::Done(ToolOutput::error(e.message().to_owned())),
        Err(_) if cancel.is_cancelled() => CallEnd::Cancelled,
        // What it wanted is used up; the run has to go on to say so, and with every call answered.
        Err(e) if e.kind() == ErrorKind::Limit && e.context("budget").is_some() => {
            CallEnd::Done(ToolOutput::error(format!("Not run: {}", e.message())))
        }
        Err(e) => CallEnd::Failed(e),
    }
}
