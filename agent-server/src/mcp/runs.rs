//! Calls of the tool that an agent is, as runs of the server's.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use agent::{
    Error, ErrorKind, Result, RunEnd, RunRequest, WhenBusy, WhenWaiting,
    core::{BoxFuture, boxed},
    run::RunInput,
    tools::mcp,
};
use tower::Service;

use crate::{ApiError, App, Caller, FoundRun, Scope, Start};

/// Runs of an agent for one caller.
#[derive(Clone)]
pub(super) struct Runs {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) agent: Arc<str>,
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
            // A client that gives the call up ends the run.
            let _given_up = run.viewer();
            run.ended().await;
            let gone = || Error::new(ErrorKind::Unexpected, "how the run ended is not known any more");
            let end = run.end().ok_or_else(gone)?;
            match &*end {
                Ok(end) => Ok(end.clone()),
                Err(error) => Err(Error::new(error.kind(), error.message().to_owned())),
            }
        })
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
        // Calls of one client come one after the other; nobody comes back to what was asked in a call that is over.
        (request.when_busy, request.when_waiting) = (Some(WhenBusy::queue()), Some(WhenWaiting::Supersede));
        let start = Start::new(&*self.agent, request);
        let session = client.map(|client| format!("mcp-{}", client.connection()));
        app.start(caller, session.into_iter().fold(start, Start::session)).await
    }
}
