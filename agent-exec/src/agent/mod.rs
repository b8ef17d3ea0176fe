//! `Agent`: built from a configuration, used as a `tower::Service<RunRequest>`.

mod builder;
mod provenance;
mod relay;

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{
    Checkpoint, Error, Journal, Model, ModelInfo, Result, RunEnd, RunRequest, Tool, ToolSpec, Toolset,
    journal::fork_at, model::ToolFinding,
};
use tower::Service;

pub use self::builder::AgentBuilder;
pub(crate) use self::provenance::Provenance;
pub use self::relay::Relay;
use crate::{
    AgentDefinition, Run, Sessions,
    start::{AgentParts, start},
};

/// An agent: a model, tools, middleware and limits. Cheap to clone. Implements `tower::Service`, so
/// that agents can be layered, rate-limited, and used as sub-agents of others.
///
/// One agent runs any number of runs concurrently; only runs of the same session wait for each
/// other.
#[derive(Clone)]
pub struct Agent {
    pub(crate) parts: Arc<AgentParts>,
    /// The configuration it was built from.
    origin: Arc<Origin>,
}

struct Origin {
    builder: AgentBuilder,
    explained: String,
}

impl Agent {
    /// Returns a builder for an agent with this name and model.
    pub fn builder(name: impl Into<String>, model: impl Model) -> AgentBuilder {
        AgentBuilder::new(name.into(), Arc::new(model))
    }

    /// Returns a copy of the agent's builder, to modify and build again. The new agent shares the
    /// parts of this one: model, tools, middleware, store and budget.
    ///
    /// ```
    /// use agent_core::testing::{ScriptedModel, Turn};
    /// use agent_exec::Agent;
    ///
    /// let patient = Agent::builder("a", ScriptedModel::new([Turn::text("hello")])).max_steps(50).build()?;
    /// let hasty = patient.to_builder().name("b").max_steps(1).build()?;
    /// assert!(patient.explain().contains("50 steps") && hasty.explain().contains("1 steps"));
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn to_builder(&self) -> AgentBuilder {
        self.origin.builder.clone()
    }

    /// Returns the agent as data, by the names under which a [`Registry`](crate::Registry) holds
    /// its parts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) with the parts that did not come from a
    /// registry.
    pub fn definition(&self) -> Result<AgentDefinition> {
        provenance::define(&self.origin.builder)
    }

    /// Returns the agent's name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Returns text lines that identify the agent's model, tools and middleware.
    pub fn fingerprint(&self) -> &str {
        &self.parts.fingerprint
    }

    /// Returns the lines in which the agent's [fingerprint](Self::fingerprint) differs from the one
    /// given, or `None` if they are equal. An engine that re-drives runs from their start must use
    /// the agent that started them.
    pub fn changes_since(&self, fingerprint: &str) -> Option<String> {
        let now = self.fingerprint();
        (now != fingerprint).then(|| crate::start::resume::difference(fingerprint, now))
    }

    /// Returns the agent's tools without the middleware stack, for code that serves or calls them
    /// directly.
    pub fn shared_tools(&self) -> &[Arc<dyn Tool>] {
        &self.origin.builder.tools
    }

    /// Returns the properties of the agent's model.
    ///
    /// ```
    /// use agent_core::{ModelInfo, testing::{ScriptedModel, Turn}};
    /// use agent_exec::Agent;
    ///
    /// let model = ScriptedModel::new([Turn::text("hello")]).with_info(ModelInfo::new("small").with_context_window(400));
    /// let agent = Agent::builder("a", model).build()?;
    /// assert_eq!(agent.model().context_window, Some(400));
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn model(&self) -> &ModelInfo {
        &self.parts.executor.model_info
    }

    /// Lists the rules of the model's provider that these tools violate, without a request: see
    /// [`Model::check_tools`](agent_core::Model::check_tools).
    pub fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        self.origin.builder.model.check_tools(tools)
    }

    /// Returns the tools that the agent was built with, including those of its middlewares. The
    /// tools of [`toolsets`](Self::toolsets) are known only within a run.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.parts.executor.tools.specs
    }

    /// Returns the tool sets whose tools may change during a run.
    pub fn toolsets(&self) -> &[Arc<dyn Toolset>] {
        &self.parts.executor.tools.sets
    }

    /// Describes the composed order of hooks, wraps and layers, the tools and the limits.
    pub fn explain(&self) -> &str {
        &self.origin.explained
    }

    /// Runs on one user message and waits for the end.
    ///
    /// # Errors
    /// The error that failed the run, with a checkpoint from which it can be resumed.
    pub async fn run(&self, text: impl Into<String>) -> Result<RunEnd> {
        self.start(RunRequest::user(text)).await
    }

    /// Returns the checkpoint of the newest run of `session` if the run is incomplete, including
    /// the questions that it waits for. Resume it with [`RunRequest::recover`].
    ///
    /// # Errors
    /// The errors of the store; [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent
    /// has none.
    pub async fn unfinished(&self, session: &str) -> Result<Option<Checkpoint>> {
        Ok(self.journal()?.index(session).await?.look(|index| index.unfinished(&self.parts.name)))
    }

    /// Returns the store of the agent's sessions, if it has one.
    pub fn store(&self) -> Option<&Arc<dyn Journal>> {
        self.parts.journal.as_ref()
    }

    /// Returns the sessions in the agent's store, to list, delete, read and edit them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent has no store.
    pub fn sessions(&self) -> Result<Sessions> {
        Ok(Sessions::of(self.journal()?.clone(), self.parts.budget.clone()))
    }

    /// Forks the newest run of `session` after its step `step` (0 is before the first): returns its
    /// checkpoint as a separate run in the new session `into`. [Edit](Checkpoint::edit) it if you
    /// like, and continue it with [`RunRequest::resume`]. To continue with another model, fork with
    /// an agent that has that model. The old session does not change.
    ///
    /// # Errors
    /// The errors of the store; [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent
    /// has none, if the run did not reach that step, or if the session `into` exists.
    pub async fn fork(&self, session: &str, step: u32, into: impl Into<Arc<str>>) -> Result<Checkpoint> {
        self.fork_at(session, None, step, into.into()).await
    }

    /// As [`fork`](Self::fork), for the run `run_id`: any run of the session, including older runs,
    /// undone runs and runs of sub-agents. Later entries are not in the fork.
    ///
    /// # Errors
    /// As [`fork`](Self::fork); [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the session
    /// has no such run.
    pub async fn fork_run(
        &self,
        session: &str,
        run_id: &str,
        step: u32,
        into: impl Into<Arc<str>>,
    ) -> Result<Checkpoint> {
        self.fork_at(session, Some(run_id), step, into.into()).await
    }

    async fn fork_at(&self, session: &str, run: Option<&str>, step: u32, into: Arc<str>) -> Result<Checkpoint> {
        let journal = self.journal()?;
        if !journal.read(&into, 0, 1).await?.is_empty() {
            return Err(Error::config(format!("there is a session '{into}': a fork needs a new one")));
        }
        let mut checkpoint = fork_at(&**journal, session, &self.parts.name, run, step, into).await?;
        checkpoint.fingerprint.clone_from(&self.parts.fingerprint); // a fork runs on this agent
        Ok(checkpoint)
    }

    fn journal(&self) -> Result<&Arc<dyn Journal>> {
        let journal = self.parts.journal.as_ref();
        journal.ok_or_else(|| Error::config("an agent without a store keeps no runs: give it one with store(..)"))
    }

    /// Opens the resources of the agent's tools and then of its model now, instead of before the
    /// first run.
    ///
    /// # Errors
    /// The first failure; the next run tries again.
    pub async fn warm_up(&self) -> Result<()> {
        self.parts.lifecycle.warm_up().await
    }

    /// Closes the resources of the agent's tools and model. End its runs first. A later run opens
    /// everything again. The caller closes the tools that a run brought along; a part that several
    /// agents share is closed for all of them.
    ///
    /// # Errors
    /// The first failure; the remaining parts are still closed.
    pub async fn close(&self) -> Result<()> {
        self.parts.lifecycle.close().await
    }

    /// Prepares a run. Nothing happens until the [`Run`] is awaited or read.
    pub fn start(&self, request: RunRequest) -> Run {
        start(self.parts.clone(), request)
    }
}

impl Service<RunRequest> for Agent {
    type Response = RunEnd;
    type Error = Error;
    type Future = Run;

    /// Always ready. Wrap the agent in tower layers to limit it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: RunRequest) -> Run {
        self.start(request)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.parts.name).finish_non_exhaustive()
    }
}
