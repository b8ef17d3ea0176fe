//! What a request brought to its run and the journal does not have: limits, parameters, the client's tools, and the request itself while
//! it waits for its turn. It is kept in the session and holds whenever the run goes on, in any process, whoever says so.

use std::sync::Arc;

use agent::{
    Caps, ModelParams, Result, RunRequest,
    core::dispatch::Job,
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

/// The keys of the storage, before the run's id.
const KEY: &str = "agent-server/asked/";

/// What a request brought beside messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Brought {
    #[serde(skip_serializing_if = "Option::is_none")]
    caps: Option<Caps>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<ModelParams>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolSpec>,
    /// What may be spent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowances: Vec<Allowance>,
    /// What the client says that the state is, when the run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
}

/// A run as it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) agent: Arc<str>,
    /// When: milliseconds since 1970, UTC.
    pub(super) asked: u64,
    pub(super) brought: Brought,
    /// The request, of a run that waits for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) queued: Option<Box<Job>>,
    /// Why it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<Over>,
}

/// Why a run that waited for its turn never began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    Cancelled,
    Refused(String),
}

impl Brought {
    /// What this request brings.
    pub(super) fn of(request: &RunRequest) -> Self {
        let tools = request.resources.get::<Specs>().map(|tools| tools.0.clone()).unwrap_or_default();
        let state = request.resources.get::<ClientState>().ok().map(|state| state.0.clone());
        let allowances = request.resources.get::<Allowances>().map(|all| all.0.clone()).unwrap_or_default();
        Self { caps: request.caps, params: request.params.clone(), tools, allowances, state }
    }

    /// True if there is something that holds when the run goes on.
    pub(super) fn is_lasting(&self) -> bool {
        self.caps.is_some() || self.params.is_some() || !self.tools.is_empty() || !self.allowances.is_empty()
    }

    /// Adds to a request that goes on with the run what it does not bring itself. The limits are those that the run began with.
    ///
    /// # Errors
    /// If the agent has a tool by now that is named as one of the client's.
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

    /// As [`again`](Self::again), of a request that begins.
    pub(super) fn first(&self, request: RunRequest, own: &[ToolSpec]) -> Result<RunRequest> {
        let request = self.again(request, own)?;
        Ok(self.state.iter().cloned().fold(request, |request, state| request.resource(ClientState(state))))
    }
}

impl Kept {
    /// The run that this request begins, or goes on with.
    pub(super) fn new(agent: impl Into<Arc<str>>, request: &RunRequest) -> Self {
        Self { agent: agent.into(), asked: now(), brought: Brought::of(request), queued: None, over: None }
    }

    /// The same, if there is something that holds when the run goes on.
    pub(super) fn lasting(agent: impl Into<Arc<str>>, request: &RunRequest) -> Option<Self> {
        Some(Self::new(agent, request)).filter(|kept| kept.brought.is_lasting())
    }

    /// The same, with all that is wanted to start it later.
    ///
    /// # Errors
    /// If the request is not data: it has handles or tools that live in this process.
    pub(super) fn queued(mut self, request: &RunRequest) -> Result<Self> {
        let mut data = request.clone();
        if data.resources.get::<Specs>().is_ok() {
            data.tools = ToolChoices::All;
        }
        (data.resources, data.budget) = (agent::core::Resources::default(), None);
        self.queued = Some(Box::new(Job::new(self.agent.clone(), &data)?));
        Ok(self)
    }

    /// What is kept of a run.
    pub(super) fn of_run(index: &SessionIndex, run: &str) -> Option<Self> {
        Self::deserialize(index.globals().get(&format!("{KEY}{run}"))?).ok()
    }

    /// The runs of a session that wait for their turn, and did not begin as far as the index tells, in their order.
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

    /// The runs of a session of which something is kept, though they cannot go on any more: they are done, or another one came in their place.
    pub(super) fn past(index: &SessionIndex) -> Vec<String> {
        let goes_on = |agent: &str, run: &str| index.unfinished(agent).is_some_and(|open| *open.ids.run_id == *run);
        let kept = index.globals().keys().filter_map(|key| key.strip_prefix(KEY));
        let is_past = |run: &&str| index.run(run).is_some_and(|(agent, _)| !goes_on(agent, run));
        kept.filter(is_past).map(str::to_owned).collect()
    }

    /// Keeps it.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn keep(&self, journal: &dyn Journal, session: &str, run: &str) -> Result<()> {
        let value = serde_json::to_value(self).map_err(|e| agent::Error::config(e.to_string()))?;
        note(journal, session, &format!("{KEY}{run}"), Some(value)).await
    }

    /// As [`keep`](Self::keep), of a run that never begins.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn end(mut self, journal: &dyn Journal, session: &str, run: &str, over: Over) -> Result<()> {
        (self.queued, self.over, self.brought) = (None, Some(over), Brought::default());
        self.keep(journal, session, run).await
    }

    /// Keeps it no more.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn forget(journal: &dyn Journal, session: &str, run: &str) -> Result<()> {
        note(journal, session, &format!("{KEY}{run}"), None).await
    }
}

impl App {
    /// What is kept of a run.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn kept(&self, session: &str, run: &str) -> Result<Option<Kept>> {
        Ok(self.journal().index(session).await?.look(|index| Kept::of_run(index, run)))
    }
}
