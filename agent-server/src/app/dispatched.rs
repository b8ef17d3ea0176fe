//! Runs that are dispatched to another execution backend: this process reads the journal and
//! forwards signals.

use std::{collections::BTreeMap, sync::Arc};

use agent::{
    Agent, Error, ErrorKind, Result, RunRequest, WhenBusy,
    core::Resources,
    dispatch::{Dispatch, Dispatched, Job, RunAddress, Signal},
    run::{Answer, RunInput, ToolChoices},
};
use serde::Deserialize;

use super::{
    App, FoundRun,
    brought::StartOptions,
    local::{Asked, NotEntered},
    start::{again, too_many},
};
use crate::{caller::Caller, client_tools::Specs, error::ApiError, webhooks::Hook};

/// Field of a job's extra with the digest of the client's request.
pub(super) const DIGEST: &str = "request_digest";

/// Parts of a dispatched run beside its request.
pub(super) struct Sent {
    /// Digest of the client's request.
    pub(super) digest: Option<Arc<str>>,
    pub(super) hooks: Vec<Hook>,
    /// Position of the first entry of a run that the journal contains.
    pub(super) began: Option<u64>,
    /// True if the run may have been requested before.
    pub(super) may_be_known: bool,
}

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
    /// Returns the execution backend.
    pub(super) fn dispatch(&self) -> &dyn Dispatch {
        self.remote().map_or(&self.0.local, |remote| &**remote)
    }

    /// Returns the execution backend, if it is not this process.
    pub(super) fn remote(&self) -> Option<&Arc<dyn Dispatch>> {
        self.0.remote.as_ref()
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

    /// Hands a run over to the execution backend. The webhooks are persisted before, so that a crash
    /// does not lose them.
    ///
    /// # Errors
    /// 429 if the caller has too many active runs; the errors of the backend, and of the store.
    pub(super) async fn hand_over(
        &self,
        caller: &Caller,
        agent: &str,
        request: &RunRequest,
        sent: Sent,
    ) -> Result<FoundRun, ApiError> {
        let job = job_of(agent, request, sent.digest.as_deref())?.tenant(caller.tenant());
        let found = FoundRun::elsewhere_of(self.clone(), job.at.clone());
        let entered = match self.remote() {
            Some(_) => None,
            None => {
                let before = if sent.may_be_known { self.kept(found.store_name(), found.id()).await? } else { None };
                let (digest, resources) = (sent.digest.clone(), request.resources.clone());
                let asked = Asked { digest, resources, began: sent.began, ..Asked::new(caller, job.clone()) };
                match self.0.local.enter(asked.before(before)) {
                    Ok(entered) => Some(entered),
                    Err(NotEntered::TooMany(most)) => return Err(too_many(most)),
                    Err(NotEntered::Active(there)) => {
                        let then = there.digest.clone();
                        return again(then.as_deref(), sent.digest.as_deref(), FoundRun::of_live(self.clone(), there));
                    }
                }
            }
        };
        let live = entered.as_ref().map(|entered| entered.run.clone());
        let is_told = self.note_hooks(caller, &found, sent.hooks.clone()).await?;
        let dispatched = match entered {
            Some(entered) => self.0.local.start(entered, None).await,
            None => self.dispatch().dispatch(job).await,
        };
        let dispatched = match dispatched {
            Ok(dispatched) => dispatched,
            Err(error) => {
                // Of a remote backend, only these errors mean that it has not accepted the run;
                // after others it may have.
                let is_refused = live.is_some() || matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Config);
                if is_told && is_refused {
                    self.forget_hooks_of_rejected(&found).await;
                }
                return Err(ApiError::of(&error).renamed(found.store_name(), &found.session()));
            }
        };
        let run = match (dispatched, live) {
            (Dispatched::New, Some(live)) => FoundRun::of_live(self.clone(), live).started(),
            (Dispatched::New, None) => found.clone().started(),
            _ => found.clone(),
        };
        if is_told && run.store_name() != found.store_name() {
            // The session was busy, and the run began in a fork of it.
            self.note_hooks(caller, &run, sent.hooks).await?;
            self.forget_hooks_of_rejected(&found).await;
        }
        if is_told {
            self.tell_when_at_rest(&run);
        }
        Ok(run)
    }

    async fn forget_hooks_of_rejected(&self, run: &FoundRun) {
        if let Err(error) = self.forget_hooks(run).await {
            let error = error.message();
            tracing::warn!(run = run.id(), error, "the webhooks of a rejected run could not be deleted");
        }
    }
}

/// Creates the job of a request, with the options that a job does not have.
fn job_of(agent: &str, request: &RunRequest, digest: Option<&str>) -> Result<Job> {
    let mut extra = StartOptions::of(request).to_extra()?;
    if let (Some(digest), Some(fields)) = (digest, extra.as_object_mut()) {
        fields.insert(DIGEST.to_owned(), digest.into());
    }
    let mut data = request.clone();
    if data.resources.get::<Specs>().is_ok() {
        data.tools = ToolChoices::All;
    }
    (data.resources, data.budget) = (Resources::default(), None);
    Ok(Job::new(agent, &data)?.extra(extra))
}

impl App {
    /// Returns the agent of a dispatched run that has not begun; none if the run is unknown.
    pub(super) async fn handed_over(&self, caller: &Caller, session: &Arc<str>, run: &str) -> Result<Option<Arc<str>>> {
        let Some(dispatch) = self.remote() else { return Ok(None) };
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
        Ok(self.app().dispatch().signal(&self.address(), signal).await?)
    }

    /// Returns the run's address for the execution backend.
    pub(super) fn address(&self) -> RunAddress {
        RunAddress::new(self.agent(), self.store_name().clone(), self.id())
    }
}
