//! Options of a request that the journal does not contain: limits, parameters, client-side tools,
//! and the request itself while it is queued. They are persisted in the session and apply whenever
//! any process resumes the run.

use std::sync::Arc;

use agent::{
    Caps, Error, ModelParams, Result, RunRequest,
    dispatch::Job,
    journal::{Journal, SessionIndex},
    run::ToolChoices,
    tool::ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{App, notes::note};
use crate::{
    client_tools::{self, ClientState, Specs},
    clock::now,
    spending::{Allowance, Allowances},
};

/// Prefix of the storage keys, before the run's id.
const KEY: &str = "agent-server/asked/";

/// Options of a request beside its messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StartOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    caps: Option<Caps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<ModelParams>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolSpec>,
    /// Spending allowances.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowances: Vec<Allowance>,
    /// Initial state from the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
}

/// Persisted request of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PersistedRequest {
    pub(super) agent: Arc<str>,
    /// Time of the request: milliseconds since 1970, UTC.
    pub(super) asked: u64,
    pub(super) brought: StartOptions,
    /// The job of a queued run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queued: Option<Box<Job>>,
    /// Reason why the run never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<Over>,
}

/// Reason why a queued run never began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    Cancelled,
    Refused(String),
}

impl StartOptions {
    /// Extracts the options of this request.
    pub(super) fn of(request: &RunRequest) -> Self {
        let tools = request.resources.get::<Specs>().map(|tools| tools.0.clone()).unwrap_or_default();
        let state = request.resources.get::<ClientState>().ok().map(|state| state.0.clone());
        let allowances = request.resources.get::<Allowances>().map(|all| all.0.clone()).unwrap_or_default();
        Self { caps: request.caps, params: request.params.clone(), tools, allowances, state }
    }

    /// Returns the options that a job contains.
    pub(super) fn of_job(job: &Job) -> Self {
        Self::deserialize(&job.extra).unwrap_or_default()
    }

    /// Encodes the options for a job.
    ///
    /// # Errors
    /// An error if they cannot be encoded as JSON.
    pub(super) fn to_extra(&self) -> Result<Value> {
        serde_json::to_value(self).map_err(|e| Error::config(e.to_string()))
    }

    /// Returns the options of a request that resumes a run, completed by those of the run's first
    /// request. The limits are always those of the first request.
    pub(super) fn since(mut self, first: Self) -> Self {
        self.caps = first.caps.or(self.caps);
        self.params = self.params.or(first.params);
        self.allowances = if first.allowances.is_empty() { self.allowances } else { first.allowances };
        self.tools = if self.tools.is_empty() { first.tools } else { self.tools };
        self
    }

    /// Returns the spending allowances.
    pub(super) fn allowances(&self) -> &[Allowance] {
        &self.allowances
    }

    /// True if there are options that must apply when the run resumes.
    pub(super) fn is_lasting(&self) -> bool {
        self.caps.is_some() || self.params.is_some() || !self.tools.is_empty() || !self.allowances.is_empty()
    }

    /// Adds the persisted options to a request that resumes the run, except those that the request
    /// sets itself. The limits are always those of the first request.
    ///
    /// # Errors
    /// An error if the agent now has a tool with the name of a client-side tool.
    pub(super) fn again(&self, mut request: RunRequest, own: &[ToolSpec]) -> Result<RunRequest> {
        request.caps = self.caps.or(request.caps);
        request.params = request.params.or_else(|| self.params.clone());
        if !self.allowances.is_empty() {
            request = request.resource(Allowances(self.allowances.clone()));
        }
        if matches!(request.tools, ToolChoices::All) {
            request = client_tools::tools(self.tools.iter().cloned(), own)?.bring(request);
        }
        Ok(request)
    }

    /// Like [`again`](Self::again), for the request that starts the run.
    pub(super) fn first(&self, request: RunRequest, own: &[ToolSpec]) -> Result<RunRequest> {
        let request = self.again(request, own)?;
        Ok(self.state.iter().cloned().fold(request, |request, state| request.resource(ClientState(state))))
    }
}

impl PersistedRequest {
    /// Creates the record of a job; it contains the job of a queued run.
    pub(super) fn of_job(job: &Job, is_queued: bool) -> Self {
        let queued = is_queued.then(|| Box::new(job.clone()));
        Self { agent: job.at.agent.clone(), asked: now(), brought: StartOptions::of_job(job), queued, over: None }
    }

    /// Returns the job of a queued run.
    ///
    /// # Errors
    /// An error if its options cannot be encoded as JSON.
    pub(super) fn job(&self) -> Result<Option<Job>> {
        let Some(job) = self.queued.as_deref() else { return Ok(None) };
        // Earlier releases stored the options beside the job only.
        let extra = if job.extra.is_null() { self.brought.to_extra()? } else { job.extra.clone() };
        Ok(Some(job.clone().extra(extra)))
    }

    /// Returns the persisted request of a run.
    pub(super) fn of_run(index: &SessionIndex, run: &str) -> Option<Self> {
        Self::deserialize(index.globals().get(&format!("{KEY}{run}"))?).ok()
    }

    /// Returns the queued runs of a session that have not begun according to the index, in order.
    pub(super) fn waiting(index: &SessionIndex) -> Vec<(String, Self)> {
        let kept = index.globals().iter().filter_map(|(key, value)| Some((key.strip_prefix(KEY)?, value)));
        let waits = kept.filter(|(run, _)| index.run(run).is_none());
        let mut waiting: Vec<_> = waits
            .filter_map(|(run, value)| Some((run.to_owned(), Self::deserialize(value).ok()?)))
            .filter(|(_, kept)| kept.queued.is_some() && kept.over.is_none())
            .collect();
        waiting.sort_by_key(|(_, kept)| kept.asked);
        waiting
    }

    /// Returns the runs of a session with a persisted request that cannot resume any more: they are
    /// over, or were superseded.
    pub(super) fn past(index: &SessionIndex) -> Vec<String> {
        let goes_on = |agent: &str, run: &str| index.unfinished(agent).is_some_and(|open| *open.ids.run_id == *run);
        let kept = index.globals().keys().filter_map(|key| key.strip_prefix(KEY));
        let is_past = |run: &&str| index.run(run).is_some_and(|(agent, _)| !goes_on(agent, run));
        kept.filter(is_past).map(str::to_owned).collect()
    }

    /// Persists the request.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn keep(&self, journal: &dyn Journal, session: &str, run: &str) -> Result<()> {
        let value = serde_json::to_value(self).map_err(|e| Error::config(e.to_string()))?;
        note(journal, session, &format!("{KEY}{run}"), Some(value)).await
    }

    /// Persists the request of a run that never begins.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn end(mut self, journal: &dyn Journal, session: &str, run: &str, over: Over) -> Result<()> {
        (self.queued, self.over, self.brought) = (None, Some(over), StartOptions::default());
        self.keep(journal, session, run).await
    }

    /// Deletes the persisted request.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn forget(journal: &dyn Journal, session: &str, run: &str) -> Result<()> {
        note(journal, session, &format!("{KEY}{run}"), None).await
    }
}

impl App {
    /// Returns the persisted request of a run.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn kept(&self, session: &str, run: &str) -> Result<Option<PersistedRequest>> {
        Ok(self.journal().index(session).await?.look(|index| PersistedRequest::of_run(index, run)))
    }
}
