//! [`Solver`]: an agent with four roles.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Finished, PerRun, Result, RunEnd, RunRequest, Tool};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;

use crate::{
    DefaultPrompts, Models, Output, Prompts, Query, QueryCache, Solution, ToolMetadata,
    command::MOST_CALLS,
    conductor::Conductor,
    progress::{PROGRESS, Progress},
    script::Script,
    tools::Toolbox,
};

/// Maximum number of model calls per step (two attempts of the planner, two of the worker, the
/// verifier), plus its waves of tool calls.
const CALLS_OF_A_STEP: u32 = 5 + MOST_CALLS as u32;

/// Model calls outside the steps: base, analysis, final, direct.
const OTHER_CALLS: u32 = 4;

/// An agent with four roles: a planner analyses the query and plans step by step, a worker converts
/// each step to tool calls, a verifier decides whether the results are sufficient, and a generator
/// writes the outputs.
///
/// It is an [`Agent`]: each role's answer is a step of the executor's loop, and the worker's calls
/// are ordinary tool calls, subject to approval, budgets, deadlines and the journal. A run can be
/// paused, cancelled, and resumed after a crash. Each run has a separate memory.
///
/// ```
/// use agent_core::testing::{ScriptedModel, Turn};
/// use agent_flow::{Ending, Models, Output, Solver};
/// use agent_tools::from_schema;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(async {
/// let model = ScriptedModel::new([
///     Turn::text(r#"{"concise_summary": "a product of two numbers"}"#),
///     Turn::text("Context: 6 and 7\nSub-Goal: the product\nTool Name: Multiply"),
///     Turn::text(r#"{"calls": [{"id": "call-1", "arguments": {"a": 6, "b": 7}}]}"#),
///     Turn::text("It is there. Conclusion: STOP"),
///     Turn::text("Six times seven is 42. <answer>42</answer>"),
/// ]);
/// let numbers = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
/// let multiply = from_schema("multiply", "Multiplies.", numbers, |args: serde_json::Value, _| async move {
///     Ok::<_, std::convert::Infallible>(json!(args["a"].as_i64().unwrap_or(0) * args["b"].as_i64().unwrap_or(0)))
/// });
///
/// let solver = Solver::builder(Models::all(model)).tool(multiply).outputs([Output::Direct]).build()?;
/// let solution = solver.solve("What is 6 times 7?").await?;
/// assert_eq!(solution.ending, Some(Ending::Verified));
/// assert_eq!(solution.memory.actions[0].results[0].result, "42");
/// assert!(solution.answer().expect("an answer").contains("<answer>42</answer>"));
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("solves");
/// ```
#[derive(Clone)]
pub struct Solver {
    agent: Agent,
    script: Arc<OnceLock<Script>>,
}

/// Builder of a [`Solver`]. [`build`](Self::build) validates all settings.
#[must_use]
pub struct SolverBuilder {
    name: String,
    models: Models,
    outputs: Vec<Output>,
    max_steps: u32,
    max_time: Duration,
    output_time: Duration,
    base_tokens: u64,
    prompts: Box<dyn Prompts>,
    tools: Vec<Arc<dyn Tool>>,
    described: Vec<ToolMetadata>,
    cache: Option<PathBuf>,
    with: Vec<Box<dyn FnOnce(AgentBuilder) -> AgentBuilder + Send>>,
}

impl Solver {
    /// Creates a builder with these models.
    pub fn builder(models: Models) -> SolverBuilder {
        SolverBuilder {
            name: "solver".into(),
            models,
            outputs: vec![Output::Final, Output::Direct],
            max_steps: 10,
            max_time: Duration::from_secs(300),
            output_time: Duration::from_secs(60),
            base_tokens: 4000,
            prompts: Box::new(DefaultPrompts),
            tools: Vec::new(),
            described: Vec::new(),
            cache: None,
            with: Vec::new(),
        }
    }

    /// Solves one query.
    ///
    /// # Errors
    /// Those of the run; [`ErrorKind::Interrupted`] or [`ErrorKind::Cancelled`] if it stopped
    /// before its end. Each contains the checkpoint from which the run can be resumed:
    /// `solver.agent().start(RunRequest::resume(..))`.
    pub async fn solve(&self, query: impl Into<Query>) -> Result<Solution> {
        let end = self.agent.start(self.request(query)).await?;
        let (kind, checkpoint) = match end {
            RunEnd::Finished(finished) => return self.solution(&finished),
            RunEnd::Cancelled(checkpoint) => (ErrorKind::Cancelled, checkpoint),
            RunEnd::Interrupted(checkpoint) | RunEnd::Paused(checkpoint) => (ErrorKind::Interrupted, checkpoint),
            _ => return Err(Error::new(ErrorKind::Interrupted, "the run did not finish")),
        };
        Err(Error::new(kind, "the query is not solved yet: go on from the checkpoint").with_checkpoint(*checkpoint))
    }

    /// Creates the request of a run that solves a query, for use with a session, an event stream,
    /// or a store.
    pub fn request(&self, query: impl Into<Query>) -> RunRequest {
        let query = query.into();
        let progress = Progress { files: query.files.clone(), ..Progress::default() };
        RunRequest::new(vec![query.message()]).state(PROGRESS.name(), json!(progress))
    }

    /// Returns the solution of a finished run of this solver.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the run belongs to another agent.
    pub fn solution(&self, finished: &Finished) -> Result<Solution> {
        let foreign = || Error::config("the run is not one of a solver");
        let progress = finished.state.get(PROGRESS.name()).ok_or_else(foreign)?;
        let progress: Progress = serde_json::from_value(progress.clone()).map_err(|e| foreign().with_source(e))?;
        let script = self.script.get().ok_or_else(foreign)?;
        Ok(script.solution(&finished.history, &progress))
    }

    /// The underlying agent: for starting, resuming, recovering and cancelling runs.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The tool descriptions used in prompts.
    pub fn tools(&self) -> impl Iterator<Item = &ToolMetadata> {
        self.script.get().into_iter().flat_map(|script| script.tools.all())
    }
}

impl SolverBuilder {
    /// Sets the agent's name. Default: `solver`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the outputs. Default: the solution and the short answer.
    pub fn outputs(mut self, outputs: impl IntoIterator<Item = Output>) -> Self {
        self.outputs = outputs.into_iter().collect();
        self
    }

    /// Sets the maximum number of steps, each with one tool. Default: 10. With zero, the outputs
    /// are written from the query alone.
    pub fn max_steps(mut self, most: u32) -> Self {
        self.max_steps = most;
        self
    }

    /// Sets the time limit for all steps together. Default: 300 seconds. At the limit, running
    /// calls are cancelled, and the outputs are written from the results so far.
    pub fn max_time(mut self, most: Duration) -> Self {
        self.max_time = most;
        self
    }

    /// Sets the time limit for each output, after the steps. Default: 60 seconds. An output that
    /// takes longer is omitted.
    pub fn output_time(mut self, most: Duration) -> Self {
        self.output_time = most;
        self
    }

    /// Sets the maximum number of tokens of the answer without steps. Default: 4,000.
    pub fn base_tokens(mut self, most: u64) -> Self {
        self.base_tokens = most;
        self
    }

    /// Sets the prompts of the roles.
    pub fn prompts(mut self, prompts: impl Prompts) -> Self {
        self.prompts = Box::new(prompts);
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds tools, for example those of a toolset.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Replaces the description of a tool in prompts.
    pub fn describe(mut self, metadata: ToolMetadata) -> Self {
        self.described.push(metadata);
        self
    }

    /// Sets the root of the cache directories: each run has a directory below it, its
    /// [`QueryCache`].
    pub fn cache_dir(mut self, root: impl Into<PathBuf>) -> Self {
        self.cache = Some(root.into());
        self
    }

    /// Configures the underlying agent: a store, a budget, middleware, layers.
    ///
    /// ```
    /// # use agent_core::{MemoryJournal, testing::ScriptedModel};
    /// # use agent_flow::{Models, Solver};
    /// let solver = Solver::builder(Models::all(ScriptedModel::new([]))).agent(|agent| agent.store(MemoryJournal::default()));
    /// ```
    pub fn agent(mut self, with: impl FnOnce(AgentBuilder) -> AgentBuilder + Send + 'static) -> Self {
        self.with.push(Box::new(with));
        self
    }

    /// Builds the solver.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], with the required change: no output, a slot without a model or with
    /// one that is never called, no tools although steps are required, tools that change during a
    /// run; and those of [`AgentBuilder::build`].
    pub fn build(mut self) -> Result<Solver> {
        self.outputs.sort_unstable();
        self.outputs.dedup();
        if self.outputs.is_empty() {
            return Err(Error::config("nothing is to come out of the solver: name base, final or direct"));
        }
        let cast = self.models.cast(&Output::slots(&self.outputs))?;
        let script = Arc::new(OnceLock::new());
        let conductor = Conductor {
            script: script.clone(),
            infos: cast.infos(),
            max_time: self.max_time,
            output_time: self.output_time,
            cache: self.cache.clone(),
            runs: PerRun::default(),
        };
        let mut builder = Agent::builder(self.name, cast).middleware(conductor).tools(self.tools);
        if let Some(root) = self.cache {
            builder = builder.resource(QueryCache::new(root));
        }
        builder = self.with.into_iter().fold(builder, |builder, with| with(builder));
        let steps = self.max_steps.saturating_mul(CALLS_OF_A_STEP).saturating_add(OTHER_CALLS);
        let agent = builder.state_key(PROGRESS.name(), Progress::field()).max_steps(steps).build()?;
        if !agent.toolsets().is_empty() {
            return Err(Error::config("a solver plans with tools that do not change: give them with tools(..)"));
        }
        let tools = Toolbox::new(agent.tools(), self.described)?;
        let (outputs, max_steps, base_tokens) = (self.outputs, self.max_steps, self.base_tokens);
        let ready = Script { prompts: self.prompts, tools, outputs, max_steps, base_tokens };
        if ready.has_steps() && max_steps > 0 && ready.tools.all().next().is_none() {
            return Err(Error::config("a solver without tools can take no step: add some, or set max_steps(0)"));
        }
        let _ = script.set(ready); // set only once
        Ok(Solver { agent, script })
    }
}

impl fmt::Debug for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Solver").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl fmt::Debug for SolverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SolverBuilder")
            .field("name", &self.name)
            .field("models", &self.models)
            .field("outputs", &self.outputs)
            .field("max_steps", &self.max_steps)
            .field("max_time", &self.max_time)
            .finish_non_exhaustive()
    }
}
