//! Tool calls of MCP clients as runs.

use std::{
    sync::{Arc, PoisonError},
    task::{Context, Poll},
};

use agent::{
    Error, Result, RunEnd, RunRequest, WhenBusy, WhenWaiting,
    core::{BoxFuture, boxed},
    history::History,
    run::{Finished, RunIds, RunInput},
    tools::mcp,
};
use tower::Service;

use super::endpoint::LatestTrace;
use crate::{ApiError, App, Caller, FoundRun, RunStatus, Scope, Start, follow::ending, speech::Ending};

/// Runs of an agent for one caller.
#[derive(Clone)]
pub(super) struct Runs {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) agent: Arc<str>,
    pub(super) trace: LatestTrace,
}

impl Service<RunRequest> for Runs {
    type Response = RunEnd;
    type Error = Error;
    type Future = BoxFuture<'static, Result<RunEnd>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: RunRequest) -> Self::Future {
        let runs = self.clone();
        boxed(|| async move {
            let told = |error: ApiError| Error::tool(error.message().to_owned());
            let run = runs.begin(request).await.map_err(told)?;
            // A client that cancels the call cancels the run.
            let _given_up = run.viewer();
            run.ended().await;
            match run.end().as_deref() {
                Some(Ok(end)) => Ok(end.clone()),
                Some(Err(error)) => Err(Error::new(error.kind(), error.message().to_owned())),
                None => end_elsewhere(&run).await,
            }
        })
    }
}

/// Returns the end of a run that another process drove, from the journal.
async fn end_elsewhere(run: &FoundRun) -> Result<RunEnd> {
    let told = |error: ApiError| Error::tool(error.message().to_owned());
    let ending = ending(run).await.map_err(told)?;
    let (stands, view) = (run.checkpoint().await.map_err(told)?.map(Box::new), run.view().await.map_err(told)?);
    match (ending, stands) {
        (Ending::Finished { answer, reason }, _) => {
            let mut ids = RunIds::root(run.agent(), run.store_name().clone());
            (ids.run_id, ids.root_run_id) = (run.id().into(), run.id().into());
            let mut finished = Finished::new(ids, answer, reason, History::default());
            (finished.steps, finished.usage) = (view.steps, view.usage);
            Ok(RunEnd::Finished(Box::new(finished)))
        }
        (Ending::Interrupted(_), Some(stands)) => Ok(RunEnd::Interrupted(stands)),
        (Ending::Cancelled, Some(stands)) => Ok(RunEnd::Cancelled(stands)),
        (Ending::Paused, Some(stands)) if view.status == RunStatus::Paused => Ok(RunEnd::Paused(stands)),
        (Ending::Failed { kind, message }, _) => Err(Error::new(kind, message)),
        (Ending::Cancelled, None) => Err(Error::tool(match run.record().await.map_err(told)? {
            None => "The agent's run was cancelled before it began.",
            Some(_) => "The agent's run was cancelled. The effects of its earlier steps remain.",
        })),
        // Calling again would repeat all effects.
        _ => Err(Error::tool(format!(
            "The agent's run '{}' has not ended and continues without this call: check its result before calling the agent again for the same task.",
            run.id()
        ))),
    }
}

impl Runs {
    async fn begin(&self, mut request: RunRequest) -> Result<FoundRun, ApiError> {
        let (app, caller) = (&self.app, &self.caller);
        let client = request.resources.get::<mcp::Caller>().ok();
        if let RunInput::Resume { checkpoint, answers } = request.input {
            caller.require(Scope::Answer)?;
            let session = app.public_name(&checkpoint.ids.session);
            let run = app.run(caller, &checkpoint.ids.run_id, Some(&session)).await?;
            let answers = answers.into_iter().map(|(id, answer)| (id, answer.by(caller.subject()))).collect();
            let shape = |request: RunRequest| match client {
                Some(client) => request.resource((*client).clone()),
                None => request,
            };
            return app.go_on(caller, &run, answers, shape).await;
        }
        // The metadata of a call names its span, and the headers at most that of the connection.
        let trace = || self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone();
        request.traceparent = request.traceparent.take().or_else(trace);
        // Calls of one client are serialised; questions of a call that is over stay unanswered.
        (request.when_busy, request.when_waiting) = (Some(WhenBusy::queue()), Some(WhenWaiting::Supersede));
        let start = Start::new(&*self.agent, request);
        let session = client.map(|client| format!("mcp-{}", client.connection()));
        app.start(caller, session.into_iter().fold(start, Start::session)).await
    }
}
