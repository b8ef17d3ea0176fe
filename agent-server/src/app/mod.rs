//! The agents that are served, their runs and their sessions: what every protocol stands on.

mod agents;
mod at_rest;
mod brought;
mod deleted;
mod dispatched;
mod drained;
mod elsewhere;
mod fork;
mod found;
mod go_on;
mod hooks;
mod live;
mod names;
mod notes;
mod questions;
mod recovery;
mod settled;
mod spent;
mod standing;
mod start;
mod view;
mod viewers;

use std::{fmt, sync::Arc, time::Duration};

use agent::{
    Agent, Drain, Message, SessionId,
    core::dispatch::{Dispatch, Upkeep},
    event::Event,
    exec::Sessions,
    journal::Journal,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use self::{agents::Agents, live::Live, questions::Memo};
pub use self::{
    dispatched::{answer_of, request_of, shape},
    found::FoundRun,
    notes::Notes,
    questions::Waiting,
    start::Start,
    view::{RunStatus, RunView},
};
pub(crate) use self::{hooks::Hooks, names::public_ids, notes::InJournal, viewers::Viewer};
use crate::{
    caller::Caller,
    error::ApiError,
    files::{self, Files},
    metrics::Metrics,
    spending::Spending,
};

/// An agent that is served, with what people are told of it.
#[derive(Clone, Debug)]
pub struct Served {
    agent: Agent,
    description: String,
}

impl Served {
    /// An agent that nothing is told of.
    pub fn new(agent: Agent) -> Self {
        Self { agent, description: String::new() }
    }

    /// Sets what the agent is good for.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// The agent, on the server's store.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.agent.name()
    }

    /// What it is good for; empty if nobody said.
    pub fn about(&self) -> &str {
        &self.description
    }
}

impl From<Agent> for Served {
    fn from(agent: Agent) -> Self {
        Self::new(agent)
    }
}

/// What the handlers of all protocols share. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    agents: Agents,
    journal: Arc<dyn Journal>,
    drain: Drain,
    /// The process is about to end: nobody waits for others any more.
    ending: CancellationToken,
    live: Live,
    /// Who runs the agents, if that is not this process.
    dispatch: Option<Arc<dyn Dispatch>>,
    /// The queue, if they take their jobs from one.
    queue: Option<Arc<dyn Upkeep>>,
    metrics: Arc<Metrics>,
    notes: Arc<dyn Notes>,
    /// None if nobody elsewhere is told of runs.
    hooks: Option<Arc<Hooks>>,
    /// None if clients upload nothing.
    files: Option<Files>,
    /// None if nobody counts what is spent.
    spending: Option<Spending>,
    /// One for each stream of events that there may be.
    streams: Arc<Semaphore>,
    /// What waits in the sessions that were looked at.
    waiting: Memo,
}

/// What a server was built of.
pub(crate) struct AppParts {
    pub(crate) agents: Vec<Served>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) drain: Drain,
    /// How many streams of events there may be.
    pub(crate) streams: usize,
    pub(crate) dispatch: Option<Arc<dyn Dispatch>>,
    pub(crate) queue: Option<Arc<dyn Upkeep>>,
    pub(crate) notes: Arc<dyn Notes>,
    pub(crate) hooks: Option<Hooks>,
    pub(crate) files: Option<Files>,
    pub(crate) spending: Option<Spending>,
}

impl App {
    /// These agents, which are on this store and drained together.
    pub(crate) fn new(parts: AppParts) -> Self {
        let AppParts { agents, journal, drain, streams, dispatch, queue, notes, hooks, files, spending } = parts;
        let metrics = Arc::new(Metrics::default());
        let live = Live::new(metrics.clone(), drain.clone(), journal.clone());
        let (hooks, streams) = (hooks.map(Arc::new), Arc::new(Semaphore::new(streams)));
        let (ending, waiting) = (CancellationToken::new(), Memo::default());
        Self(Arc::new(Inner {
            agents: Agents::new(agents),
            journal,
            drain,
            ending,
            live,
            dispatch,
            queue,
            metrics,
            notes,
            hooks,
            files,
            spending,
            streams,
            waiting,
        }))
    }

    /// Room for one more stream of events; it is given back when it is dropped.
    ///
    /// # Errors
    /// 429 if there is none.
    pub(crate) fn stream(&self) -> Result<OpenStream, ApiError> {
        let permit = self.0.streams.clone().try_acquire_owned().map_err(|_| {
            let message = "more streams are open than this server takes: close one, or come back later";
            ApiError::too_many("too_many_streams", message, Duration::from_secs(10))
        })?;
        self.0.metrics.streams.inc();
        Ok(OpenStream { metrics: self.0.metrics.clone(), _permit: permit })
    }

    /// The files that clients upload.
    ///
    /// # Errors
    /// 404 if they upload none.
    pub(crate) fn files(&self) -> Result<&Files, ApiError> {
        let none = || ApiError::not_found("this server takes no files: send them in the message");
        self.0.files.as_ref().ok_or_else(none)
    }

    /// A message that may name uploaded files, with what they are.
    ///
    /// # Errors
    /// 404 if one is not there.
    pub(crate) async fn with_files(&self, caller: &Caller, message: Message) -> Result<Message, ApiError> {
        match files::names_any(&message) {
            true => self.files()?.named(caller, message).await,
            false => Ok(message),
        }
    }

    /// Lets go of old files, now and again, until the server drains.
    pub(crate) async fn keep_sweeping(&self) {
        while let (Some(files), false) = (&self.0.files, self.is_draining()) {
            files.sweep().await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
    }

    /// The figures.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The agents that there are for the caller, by name.
    pub fn agents(&self, caller: &Caller) -> impl Iterator<Item = Served> {
        self.0.agents.all().into_iter().filter(|served| caller.may_use(served.name()))
    }

    /// The agent of this name.
    ///
    /// # Errors
    /// 404 if there is none for the caller.
    pub fn agent(&self, caller: &Caller, name: &str) -> Result<Served, ApiError> {
        let served = self.0.agents.find(name).filter(|_| caller.may_use(name));
        served.ok_or_else(|| ApiError::not_found(format!("there is no agent '{name}'")))
    }

    /// Serves an agent in the place of the one of its name, for all runs that begin from now on. Runs that are under way, and runs
    /// that wait for an answer, keep the agent that they began with; of an agent that changes often, the eight versions before
    /// this one are kept for them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if no agent of this name is served, or its parts do not go together.
    pub fn replace(&self, agent: impl Into<Served>) -> agent::Result<()> {
        let inner = &*self.0;
        inner.agents.replace(agent.into().on(&inner.journal, &inner.drain, inner.files.as_ref())?)
    }

    /// Where all sessions are kept.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    /// The sessions of all tenants.
    pub fn sessions(&self) -> Sessions {
        Sessions::new(self.0.journal.clone())
    }

    /// The session that a caller means by a name: one of the caller's tenant, whatever the name.
    pub fn session_id(&self, caller: &Caller, name: &str) -> SessionId {
        SessionId::new(caller.tenant(), name)
    }

    /// As [`session_id`](Self::session_id), of a session that is to begin.
    ///
    /// # Errors
    /// 400 for a name that no session can have.
    pub fn new_session(&self, caller: &Caller, name: &str) -> Result<SessionId, ApiError> {
        names::check(name)?;
        Ok(self.session_id(caller, name))
    }

    /// True since the server was told to end: no run begins any more.
    pub fn is_draining(&self) -> bool {
        self.0.drain.is_draining()
    }

    /// An event as it goes out: with the session's name as the client knows it.
    pub fn public(&self, mut event: Event) -> Event {
        event.ids = Arc::new(public_ids(&event.ids));
        event
    }

    /// The name by which clients know a session of the store.
    pub(crate) fn public_name(&self, session: &Arc<str>) -> Arc<str> {
        names::public(session)
    }

    /// Waits until the server was told to end.
    async fn ends(&self) {
        self.0.ending.cancelled().await;
    }
}

/// A stream of events that somebody reads.
#[derive(Debug)]
pub(crate) struct OpenStream {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.metrics.streams.dec();
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("agents", &self.0.agents.names()).finish_non_exhaustive()
    }
}
