//! Runs that are dispatched to another execution backend: this process reads the journal and
//! forwards signals.

use std::{collections::BTreeMap, sync::Arc};

use agent::{
    Agent, Error, ErrorKind, Result, RunRequest, WhenBusy,
    dispatch::{Dispatch, Dispatched, Job, RunAddress, Signal},
    run::{Answer, RunInput},
};
use serde::Deserialize;

use super::{
    App, FoundRun,
    brought::{PersistedRequest, StartOptions},
};
use crate::{caller::Caller, error::ApiError, webhooks::Hook};

/// Field of a job's extra with the digest of the client's request.
pub(super) const DIGEST: &str = "request_digest";

/// Completes the request of a dispatched job, for a new or a resumed run, with the client's
/// options, which the job contains as data: limits, parameters and tools. For receivers of the jobs
/// of [`ServerBuilder::dispatch`](crate::ServerBuilder::dispatch).
///
/// # Errors
/// An error if the job was not created by a server, or if the agent has a tool with the name of a
/// client-side tool.
pub fn shape(job: &Job, agent: &Agent, request: RunRequest) -> Result<RunRequest> {
    match request.input {
        RunInput::Messages(_) => brought(job)?.first(request, agent.tools()),
        _ => brought(job)?.again(request, agent.tools()),
    }
}

/// Converts a dispatched job into its request, completed by [`shape`].
///
/// # Errors
/// The errors of [`shape`].
pub fn request_of(job: &Job, agent: &Agent) -> Result<RunRequest> {
    shape(job, agent, job.request())
}

/// Like [`request_of`], for a run that resumes with these answers, by question id.
///
/// # Errors
/// The errors of [`shape`].
pub fn answer_of(job: &Job, agent: &Agent, answers: BTreeMap<String, Answer>) -> Result<RunRequest> {
    let request = RunRequest::recover_with(job.at.session.clone(), answers).streaming(job.stream.unwrap_or(true));
    shape(job, agent, request)
}

fn brought(job: &Job) -> Result<StartOptions> {
    let unreadable = |e| Error::config(format!("the job '{}' was not created by a server: {e}", job.at.run));
    StartOptions::deserialize(&job.extra).map_err(unreadable)
}

impl App {
    /// Returns the execution backend, if it is not this process.
    pub(super) fn dispatch(&self) -> Option<&Arc<dyn Dispatch>> {
        self.0.dispatch.as_ref()
    }

    /// Rejects options that workers would ignore: they run the jobs of a session one after the
    /// other.
    pub(super) fn check_busy(&self, busy: Option<WhenBusy>) -> Result<(), ApiError> {
        match (&self.0.queue, busy) {
            (Some(_), Some(WhenBusy::Reject | WhenBusy::Steer | WhenBusy::Fork)) => Err(ApiError::invalid(
                "with workers a run waits until its session is free: remove when_busy, or steer the active run (POST /api/runs/{run}/steer)",
            )),
            _ => Ok(()),
        }
    }

    /// Dispatches a run, which the backend persists: this process writes only the webhooks. It
    /// writes them first, so that a crash does not lose them.
    pub(super) async fn hand_over(
        &self,
        dispatch: &dyn Dispatch,
        caller: &Caller,
        agent: Arc<str>,
        request: &RunRequest,
        digest: Option<&str>,
        hooks: Vec<Hook>,
    ) -> Result<FoundRun, ApiError> {
        let kept = PersistedRequest::new(agent.clone(), request).queued(request)?;
        let Some(job) = kept.queued.as_deref() else { return Err(ApiError::internal()) };
        let mut extra = serde_json::to_value(&kept.brought).unwrap_or_default();
        if let (Some(digest), Some(fields)) = (digest, extra.as_object_mut()) {
            fields.insert(DIGEST.to_owned(), digest.into());
        }
        let (job, at) = (job.clone().tenant(caller.tenant()).extra(extra), job.at.clone());
        let found = FoundRun::elsewhere_of(self.clone(), at);
        let is_told = self.note_hooks(caller, &found, hooks).await?;
        let dispatched = match dispatch.dispatch(job).await {
            Ok(dispatched) => dispatched,
            Err(error) => {
                // Only these errors mean that the backend has not accepted the run; after others it
                // may have.
                let is_refused = matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Config);
                if is_told
                    && is_refused
                    && let Err(error) = self.forget_hooks(&found).await
                {
                    tracing::warn!(
                        run = found.id(),
                        error = error.message(),
                        "the webhooks of a rejected run could not be deleted"
                    );
                }
                return Err(error.into());
            }
        };
        if is_told {
            self.tell_when_at_rest(&found);
        }
        Ok(match dispatched {
            Dispatched::New => found.started(),
            _ => found,
        })
    }
}

impl App {
    /// Returns the agent of a dispatched run that has not begun; none if the run is unknown.
    pub(super) async fn handed_over(&self, caller: &Caller, session: &Arc<str>, run: &str) -> Result<Option<Arc<str>>> {
        let Some(dispatch) = self.dispatch() else { return Ok(None) };
        for served in self.agents(caller) {
            let at = RunAddress::new(served.name(), session.clone(), run);
            if dispatch.standing(&at).await?.is_some() {
                return Ok(Some(at.agent));
            }
        }
        Ok(None)
    }
}

impl FoundRun {
    /// Signals the run, wherever it is active. Returns `false` if it is not active.
    ///
    /// # Errors
    /// The errors of the execution backend.
    pub async fn tell_run(&self, signal: Signal) -> Result<bool, ApiError> {
        if let Some(dispatch) = self.app().dispatch() {
            return Ok(dispatch.signal(&self.address(), signal).await?);
        }
        match signal {
            Signal::Cancel => Ok(self.cancel()),
            Signal::Pause => Ok(self.pause()),
            Signal::Steer(message) => match self.handle() {
                Some(handle) => Ok(handle.steer(message).map(|()| true)?),
                None => Ok(false),
            },
            _ => Err(ApiError::invalid("unsupported signal")),
        }
    }

    /// Resumes the run in the execution backend.
    pub(super) async fn answer_elsewhere(
        &self,
        dispatch: &dyn Dispatch,
        answers: Vec<(String, Answer)>,
    ) -> Result<Self, ApiError> {
        dispatch.answer(&self.address(), answers.into_iter().collect()).await?;
        Ok(self.clone())
    }

    /// Returns the run's address for the execution backend.
    pub(super) fn address(&self) -> RunAddress {
        RunAddress::new(self.agent(), self.store_name().clone(), self.id())
    }
}
