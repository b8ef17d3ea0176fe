//! The thin container: configuration in, a `tower::Service<RunRequest>` out.

mod builder;
mod provenance;
mod relay;

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use agent_core::{
    Checkpoint, Error, Journal, Model, ModelInfo, Result, RunEnd, RunRequest, Tool, ToolSpec, Toolset, journal::fork_at,
};
use tower::Service;

pub use self::builder::AgentBuilder;
pub(crate) use self::provenance::Provenance;
pub use self::relay::Relay;
use crate::{
    AgentDefinition, Run, Sessions,
    start::{AgentParts, start},
};

/// An agent: a model, tools, middleware and limits. Cheap to clone; itself a `tower::Service`, so that agents can be
/// layered, limited, and run as sub-agents of others.
///
/// One agent runs any number of runs at once; only runs of one session wait for each other's end.
#[derive(Clone)]
pub struct Agent {
    pub(crate) parts: Arc<AgentParts>,
    /// What it was built from.
    origin: Arc<Origin>,
}

struct Origin {
    builder: AgentBuilder,
    explained: String,
}

impl Agent {
    /// Begins an agent of this name on this model.
    pub fn builder(name: impl Into<String>, model: impl Model) -> AgentBuilder {
        AgentBuilder::new(name.into(), Arc::new(model))
    }

    /// What it was built from, to be changed and built again. The new agent shares the parts of this one: model, tools,
    /// middleware, store and budget.
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

    /// The agent as data, by the names that a [`Registry`](crate::Registry) has its parts under.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) with the parts that did not come from a registry.
    pub fn definition(&self) -> Result<AgentDefinition> {
        provenance::define(&self.origin.builder)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// What tells its model, tools and middleware apart from those of another agent, in lines.
    pub fn fingerprint(&self) -> &str {
        &self.parts.fingerprint
    }

    /// The lines in which its [fingerprint](Self::fingerprint) is not that of the agent that a run began with; none if it is the
    /// same. An engine that drives runs again from their beginning does so with the agent that they began with.
    pub fn changes_since(&self, fingerprint: &str) -> Option<String> {
        let now = self.fingerprint();
        (now != fingerprint).then(|| crate::start::resume::difference(fingerprint, now))
    }

    /// Its tools as they are, for who serves or calls them by themselves: without what the agent's middleware does about calls.
    pub fn shared_tools(&self) -> &[Arc<dyn Tool>] {
        &self.origin.builder.tools
    }

    /// What is known of its model.
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

    /// The tools that it was built with, those of its middlewares too. What [`toolsets`](Self::toolsets) add is not known
    /// before a run.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.parts.executor.tools.specs
    }

    /// The sets of tools that may change while a run is under way.
    pub fn toolsets(&self) -> &[Arc<dyn Toolset>] {
        &self.parts.executor.tools.sets
    }

    /// The composed order of hooks, wraps and layers, the tools and the limits, in words.
    pub fn explain(&self) -> &str {
        &self.origin.explained
    }

    /// Runs on one user message and waits for the end.
    ///
    /// # Errors
    /// What failed the run, with a checkpoint from which it can go on.
    pub async fn run(&self, text: impl Into<String>) -> Result<RunEnd> {
        self.start(RunRequest::user(text)).await
    }

    /// Where the newest run of `session` stands, if it is not finished: with the questions that it waits for. It is gone
    /// on with by [`RunRequest::recover`].
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent has none.
    pub async fn unfinished(&self, session: &str) -> Result<Option<Checkpoint>> {
        Ok(self.journal()?.index(session).await?.look(|index| index.unfinished(&self.parts.name)))
    }

    /// Where its sessions are kept, if it has a store.
    pub fn store(&self) -> Option<&Arc<dyn Journal>> {
        self.parts.journal.as_ref()
    }

    /// The sessions in its store: to list and delete them, and to read and edit what was said.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent has no store.
    pub fn sessions(&self) -> Result<Sessions> {
        Ok(Sessions::of(self.journal()?.clone()))
    }

    /// Where the newest run of `session` stood after its step `step` (0 is before the first), as a run of its own in the new
    /// session `into`. [Edit](Checkpoint::edit) it if you like, and go on from it with [`RunRequest::resume`]; to go on with
    /// another model, fork with an agent that has it. The old session stays as it is.
    ///
    /// # Errors
    /// Those of the store; [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the agent has none, if the run did not
    /// come that far, or if there is a session `into`.
    pub async fn fork(&self, session: &str, step: u32, into: impl Into<Arc<str>>) -> Result<Checkpoint> {
        self.fork_at(session, None, step, into.into()).await
    }

    /// As [`fork`](Self::fork), of the run `run_id`: of any that the session has, an older one, one that was undone, or one of a
    /// sub-agent. What came after it is not in the fork.
    ///
    /// # Errors
    /// As [`fork`](Self::fork); [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the session has no such run.
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
        checkpoint.fingerprint.clone_from(&self.parts.fingerprint); // whoever forks means this agent
        Ok(checkpoint)
    }

    fn journal(&self) -> Result<&Arc<dyn Journal>> {
        let journal = self.parts.journal.as_ref();
        journal.ok_or_else(|| Error::config("an agent without a store keeps no runs: give it one with store(..)"))
    }

    /// Opens what the agent's tools and its model need, in that order, now instead of before its first run.
    ///
    /// # Errors
    /// The first failure; the next run tries again.
    pub async fn warm_up(&self) -> Result<()> {
        self.parts.lifecycle.warm_up().await
    }

    /// Gives back what its tools and its model opened. End its runs first. A later run opens everything again. Tools that a
    /// run brought are closed by whoever brought them; a part that several agents have is closed for all of them.
    ///
    /// # Errors
    /// The first failure; everything is closed all the same.
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

    /// Always ready: put stock layers around the agent to limit it.
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
