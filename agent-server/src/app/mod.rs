//! Agents, runs and sessions: the base of all protocols.

mod agents;
mod at_rest;
mod brought;
mod deleted;
mod dispatched;
mod drained;
mod elsewhere;
mod feed;
mod fork;
mod found;
mod go_on;
mod hooks;
mod listed;
mod live;
mod local;
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
    dispatch::{ChunkRelay, Dispatch, QueueAdmin},
    event::Event,
    exec::Sessions,
    journal::Journal,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    agents::Agents,
    feed::Feeds,
    local::{Local, LocalParts},
};
pub use self::{
    dispatched::{answer_of, request_of, shape},
    found::FoundRun,
    notes::Notes,
    questions::Waiting,
    start::Start,
    view::{RunStatus, RunView},
};
pub(crate) use self::{
    hooks::Hooks,
    listed::RunsQuery,
    names::public_ids,
    notes::{InJournal, NOTES},
    viewers::Viewer,
};
use crate::{
    caller::Caller,
    error::ApiError,
    files::{self, Files},
    metrics::Metrics,
    spending::Spending,
};

/// Served agent with its description.
#[derive(Clone, Debug)]
pub struct Served {
    agent: Agent,
    description: String,
}

impl Served {
    /// Creates a served agent without a description.
    pub fn new(agent: Agent) -> Self {
        Self { agent, description: String::new() }
    }

    /// Sets the description of the agent's purpose.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Returns the agent, on the server's store.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Returns the agent's name.
    pub fn name(&self) -> &str {
        self.agent.name()
    }

    /// Returns the description; empty if not set.
    pub fn about(&self) -> &str {
        &self.description
    }
}

impl From<Agent> for Served {
    fn from(agent: Agent) -> Self {
        Self::new(agent)
    }
}

/// State that the handlers of all protocols share. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    agents: Agents,
    journal: Arc<dyn Journal>,
    drain: Drain,
    /// Cancelled on shutdown: handlers stop waiting for other processes.
    ending: CancellationToken,
    /// Execution in this process.
    local: Local,
    /// Execution backend, if it is not this process.
    remote: Option<Arc<dyn Dispatch>>,
    /// Queue of the execution backend, if it has one.
    queue: Option<Arc<dyn QueueAdmin>>,
    /// Transport of transient events between processes.
    relay: Option<Arc<dyn ChunkRelay>>,
    /// Feeds of runs that other processes execute.
    feeds: Feeds,
    metrics: Arc<Metrics>,
    notes: Arc<dyn Notes>,
    /// None if webhooks are disabled.
    hooks: Option<Arc<Hooks>>,
    /// None if uploads are disabled.
    files: Option<Files>,
    /// None if spending is not counted.
    spending: Option<Spending>,
    /// Keeps the worker of this process at work.
    _working: DropGuard,
    /// One permit per event stream.
    streams: Arc<Semaphore>,
}

/// Parts of a server.
pub(crate) struct AppParts {
    pub(crate) agents: Vec<Served>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) drain: Drain,
    /// Maximum number of event streams.
    pub(crate) streams: usize,
    pub(crate) dispatch: Option<Arc<dyn Dispatch>>,
    pub(crate) queue: Option<Arc<dyn QueueAdmin>>,
    pub(crate) relay: Option<Arc<dyn ChunkRelay>>,
    pub(crate) notes: Arc<dyn Notes>,
    pub(crate) hooks: Option<Hooks>,
    pub(crate) files: Option<Files>,
    pub(crate) spending: Option<Spending>,
}

impl App {
    /// Creates the state from agents on this store, which are drained together.
    pub(crate) fn new(parts: AppParts) -> Self {
        let AppParts { agents, journal, drain, streams, dispatch, queue, relay, notes, hooks, files, spending } = parts;
        let metrics = Arc::new(Metrics::default());
        let agents = Agents::new(agents);
        let (local, working) = Local::new(LocalParts {
            agents: agents.clone(),
            journal: journal.clone(),
            drain: drain.clone(),
            metrics: metrics.clone(),
            relay: relay.clone(),
            spending: spending.clone(),
        });
        let (hooks, streams) = (hooks.map(Arc::new), Arc::new(Semaphore::new(streams)));
        let ending = CancellationToken::new();
        Self(Arc::new(Inner {
            agents,
            journal,
            drain,
            ending,
            _working: working,
            local,
            remote: dispatch,
            queue,
            relay,
            feeds: Feeds::default(),
            metrics,
            notes,
            hooks,
            files,
            spending,
            streams,
        }))
    }

    /// Reserves an event stream, which is released when dropped.
    ///
    /// # Errors
    /// 429 if the limit is reached.
    pub(crate) fn stream(&self) -> Result<OpenStream, ApiError> {
        let permit = self.0.streams.clone().try_acquire_owned().map_err(|_| {
            let message = "too many open event streams: close one, or retry later";
            ApiError::too_many("too_many_streams", message, Duration::from_secs(10))
        })?;
        self.0.metrics.streams.inc();
        Ok(OpenStream { metrics: self.0.metrics.clone(), _permit: permit })
    }

    /// Returns the uploaded files.
    ///
    /// # Errors
    /// 404 if uploads are disabled.
    pub(crate) fn files(&self) -> Result<&Files, ApiError> {
        let none = || ApiError::not_found("uploads are disabled: send files inline in the message");
        self.0.files.as_ref().ok_or_else(none)
    }

    /// Completes the file references of a message.
    ///
    /// # Errors
    /// 404 if a file does not exist.
    pub(crate) async fn with_files(&self, caller: &Caller, message: Message) -> Result<Message, ApiError> {
        match files::names_any(&message) {
            true => self.files()?.named(caller, message).await,
            false => Ok(message),
        }
    }

    /// Deletes expired files periodically, until the server drains.
    pub(crate) async fn keep_sweeping(&self) {
        while let (Some(files), false) = (&self.0.files, self.is_draining()) {
            files.sweep().await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
    }

    /// Returns the metrics.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Returns the agents that the caller may use, by name.
    pub fn agents(&self, caller: &Caller) -> impl Iterator<Item = Served> {
        self.0.agents.all().into_iter().filter(|served| caller.may_use(served.name()))
    }

    /// Returns the agent of this name.
    ///
    /// # Errors
    /// 404 if the caller may not use such an agent.
    pub fn agent(&self, caller: &Caller, name: &str) -> Result<Served, ApiError> {
        let served = self.0.agents.find(name).filter(|_| caller.may_use(name));
        served.ok_or_else(|| ApiError::not_found(format!("unknown agent '{name}'")))
    }

    /// Replaces the agent of the same name for all new runs. Active and suspended runs keep the
    /// agent that they began with; up to eight former versions are kept for them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent::ErrorKind::Config) if no agent has this name, or the agent
    /// cannot be built for this server.
    pub fn replace(&self, agent: impl Into<Served>) -> agent::Result<()> {
        let inner = &*self.0;
        inner.agents.replace(agent.into().on(&inner.journal, &inner.drain, inner.files.as_ref())?)
    }

    /// Returns the store of all sessions.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    /// Returns the sessions of all tenants.
    pub fn sessions(&self) -> Sessions {
        Sessions::new(self.0.journal.clone())
    }

    /// Returns the id of a session in the caller's tenant.
    pub fn session_id(&self, caller: &Caller, name: &str) -> SessionId {
        SessionId::new(caller.tenant(), name)
    }

    /// Like [`session_id`](Self::session_id), for a new session.
    ///
    /// # Errors
    /// 400 for an invalid session name.
    pub fn new_session(&self, caller: &Caller, name: &str) -> Result<SessionId, ApiError> {
        names::check(name)?;
        Ok(self.session_id(caller, name))
    }

    /// True once the server is draining: no run begins any more.
    pub fn is_draining(&self) -> bool {
        self.0.drain.is_draining()
    }

    /// Converts an event for clients: with the session's name as the client knows it.
    pub fn public(&self, mut event: Event) -> Event {
        event.ids = Arc::new(public_ids(&event.ids));
        event
    }

    /// Returns the name by which clients know a session of the store.
    pub(crate) fn public_name(&self, session: &Arc<str>) -> Arc<str> {
        names::public(session)
    }

    /// Waits until the server shuts down.
    async fn ends(&self) {
        self.0.ending.cancelled().await;
    }
}

/// Permit of an open event stream.
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
