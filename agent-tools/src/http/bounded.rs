//! Work with a time limit.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Result, Retry, RunCx, run::RunDeadline};
use tokio::time::timeout;

/// Runs the work until its own timeout, the run's deadline or the run's cancellation.
pub(crate) async fn bounded<T>(cx: &RunCx, longest: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let most = cx.deadline().map_or(Duration::MAX, RunDeadline::left).min(longest);
    let late = |_| {
        let message = format!("there was no whole answer within {most:.0?}: try it later, or in another way");
        Err(Error::tool(message).with_retry(Retry::Temporary(None)))
    };
    tokio::select! {
        () = cx.cancellation().cancelled() => Err(Error::new(ErrorKind::Cancelled, "the run was cancelled")),
        done = timeout(most, work) => done.unwrap_or_else(late),
    }
}
