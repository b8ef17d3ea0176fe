//! Runs that are handed to whoever runs the agents elsewhere: this process reads the journal, and passes on what runs are told.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use agent::{
    Agent, Error, ErrorKind, Result, RunRequest, SessionId, WhenBusy,
    core::dispatch::{Dispatch, Dispatched, Job, RunAddress, Signal, Wanted},
    journal::RunRecord,
    run::{Answer, RunInput},
};
use serde::Deserialize;

use super::{
    App, FoundRun,
    brought::{Brought, Kept},
};
use crate::{caller::Caller, error::ApiError, webhooks::Hook};

/// Sessions that are read at once.
const PAGE: usize = 500;

/// The request of a server's job, as it begins or goes on, with what its client brought, which the job has as data: limits, parameters, tools.
/// For whoever runs what [`ServerBuilder::dispatch`](crate::ServerBuilder::dispatch) hands over.
///
/// # Errors
/// If the job was not sent by a server, or if the agent has a tool that is named as one of the client's.
pub fn shape(job: &Job, agent: &Agent, request: RunRequest) -> Result<RunRequest> {
    match request.input {
        RunInput::Messages(_) => brought(job)?.first(request, agent.tools()),
        _ => brought(job)?.again(request, agent.tools()),
    }
}

/// The request that a job of a server is: as [`shape`] makes it of the job's own.
///
/// # Errors
/// As [`shape`].
pub fn request_of(job: &Job, agent: &Agent) -> Result<RunRequest> {
    shape(job, agent, job.request())
}

/// As [`request_of`], of a run that goes on with these answers, by question id.
///
/// # Errors
/// As [`shape`].
pub fn answer_of(job: &Job, agent: &Agent, answers: BTreeMap<String, Answer>) -> Result<RunRequest> {
    let request = RunRequest::recover_with(job.at.session.clone(), answers).streaming(job.stream.unwrap_or(true));
    shape(job, agent, request)
}

fn brought(job: &Job) -> Result<Brought> {
    let unreadable = |e| Error::config(format!("the job '{}' is none of a server's: {e}", job.at.run));
    Brought::deserialize(&job.extra).map_err(unreadable)
}

impl App {
    /// Who runs the agents, if that is not this process.
    pub(super) fn dispatch(&self) -> Option<&Arc<dyn Dispatch>> {
        self.0.dispatch.as_ref()
    }

    /// Refuses what workers would pass over: they run what a session is sent one after the other.
    pub(super) fn check_busy(&self, busy: Option<WhenBusy>) -> Result<(), ApiError> {
        match (&self.0.queue, busy) {
            (Some(_), Some(WhenBusy::Reject | WhenBusy::Steer | WhenBusy::Fork)) => Err(ApiError::invalid(
                "over workers a run waits for the one that its session is busy with: send it without when_busy, or steer that one (POST /api/runs/{run}/steer)",
            )),
            _ => Ok(()),
        }
    }

    /// Hands a run over, which keeps it: nothing is written of it here but who is told of it. That is noted first, so that it is not lost with this process.
    pub(super) async fn hand_over(
        &self,
        dispatch: &dyn Dispatch,
        caller: &Caller,
        agent: Arc<str>,
        request: &RunRequest,
        hooks: Vec<Hook>,
    ) -> Result<FoundRun, ApiError> {
        let kept = Kept::new(agent.clone(), request).queued(request)?;
        let Some(job) = kept.queued.as_deref() else { return Err(ApiError::internal()) };
        let extra = serde_json::to_value(&kept.brought).unwrap_or_default();
        let (job, at) = (job.clone().tenant(caller.tenant()).extra(extra), job.at.clone());
        let found = FoundRun::elsewhere_of(self.clone(), at);
        let is_told = self.note_hooks(caller, &found, hooks).await?;
        let dispatched = match dispatch.dispatch(job).await {
            Ok(dispatched) => dispatched,
            Err(error) => {
                // It is not there for sure: who says something else may have taken it.
                let is_refused = matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::Config);
                if is_told
                    && is_refused
                    && let Err(error) = self.forget_hooks(&found).await
                {
                    tracing::warn!(
                        run = found.id(),
                        error = error.message(),
                        "what was noted of a run that was refused stays"
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
    /// As [`list`](Self::list), of what the queue knows, or else the journal.
    pub(super) async fn runs_elsewhere(
        &self,
        caller: &Caller,
        session: Option<&str>,
        agent: Option<&str>,
        most: usize,
    ) -> Result<Vec<FoundRun>, ApiError> {
        let (session, agents) = (session.map(|name| self.session_id(caller, name)), caller.among(agent));
        let found = match &self.0.queue {
            Some(queue) => {
                let mut wanted = Wanted::default().tenant(caller.tenant()).most(most);
                (wanted.agents, wanted.session) = (agents, session.map(|session| session.to_string()));
                queue.jobs(&wanted).await?.into_iter().map(|job| job.job.at).collect()
            }
            None => self.in_journal(caller, session.as_ref(), agents.as_deref(), most).await?,
        };
        Ok(found.into_iter().map(|at| FoundRun::elsewhere_of(self.clone(), at)).collect())
    }

    /// Those of the sessions that were written to last.
    async fn in_journal(
        &self,
        caller: &Caller,
        session: Option<&SessionId>,
        agents: Option<&[String]>,
        most: usize,
    ) -> Result<Vec<RunAddress>, ApiError> {
        let is_wanted = |agent: &str| agents.is_none_or(|agents| agents.iter().any(|one| one == agent));
        let sessions = match session {
            Some(session) => vec![session.to_string()],
            None => self.newest_sessions(caller, is_wanted, most).await?,
        };
        let mut runs = Vec::new();
        for name in sessions {
            let index = self.journal().index(&name).await?;
            for agent in self.0.agents.names().iter().filter(|agent| is_wanted(agent)) {
                let of_agent = index.look(|index| index.runs(agent).to_vec());
                let address =
                    |run: RunRecord| (run.started, RunAddress::new(agent.as_str(), name.as_str(), run.run_id));
                runs.extend(of_agent.into_iter().map(address));
            }
        }
        runs.sort_by_key(|(started, _)| Reverse(*started));
        Ok(runs.into_iter().take(most).map(|(_, at)| at).collect())
    }

    /// At most so many sessions in which a wanted agent ran.
    async fn newest_sessions(
        &self,
        caller: &Caller,
        is_wanted: impl Fn(&str) -> bool,
        most: usize,
    ) -> Result<Vec<String>, ApiError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.sessions().list(caller.tenant(), after.as_ref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            for id in page {
                let name = id.to_string();
                let info = self.journal().info(&name).await?;
                let info = info.filter(|info| info.agents.iter().any(|agent| is_wanted(agent)));
                all.extend(info.map(|info| (info.updated, name)));
            }
        }
        all.sort_by_key(|(updated, _)| Reverse(*updated));
        Ok(all.into_iter().take(most).map(|(_, name)| name).collect())
    }

    /// The agent of a run that was handed over and has not begun; none if nobody knows it.
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
    /// Tells it something, wherever it is under way; false if it is nowhere.
    ///
    /// # Errors
    /// Those of whoever runs it.
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
            _ => Err(ApiError::invalid("this release does not know that signal")),
        }
    }

    /// Goes on with it elsewhere.
    pub(super) async fn answer_elsewhere(
        &self,
        dispatch: &dyn Dispatch,
        answers: Vec<(String, Answer)>,
    ) -> Result<Self, ApiError> {
        dispatch.answer(&self.address(), answers.into_iter().collect()).await?;
        Ok(self.clone())
    }

    /// It, for whoever runs it.
    pub(super) fn address(&self) -> RunAddress {
        RunAddress::new(self.agent(), self.store_name().clone(), self.id())
    }
}
