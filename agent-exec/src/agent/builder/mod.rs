//! `AgentBuilder`: configures and builds an agent.
// Over 500 lines: the options of one builder, each with its documentation.

mod check;
mod explain;

use std::{any::Any, fmt, sync::Arc};

use agent_core::{
    BoxError, Budget, Checkpoint, Deadlines, Error, GlobalStorage, Journal, Middleware, Model, ModelParams,
    ModelRequest, ModelResponse, ModelService, Part, Resources, Result, RunEnd, RunRequest, StateField, StateSchema,
    SubAgent, SystemMessage, Tool, ToolOutput, ToolRequest, ToolService, Toolset, WhenBusy, WhenWaiting,
    middleware::Middlewares, tool::ServerTool,
};
use agent_tools::ArgumentSchema;
use tower::{Layer, Service};

use super::{Agent, Origin, Provenance};
use crate::{
    drain::Drain,
    executor::{Executor, Limits},
    lifecycle::Lifecycle,
    prompts::{PromptParts, Prompts, RequiredVariables},
    stack::{self, Item, Named, ToolEntry, Tools},
    start::{AgentParts, Migration},
};

/// Configures and builds an agent. [`build`](Self::build) checks the whole configuration.
///
/// # Order
///
/// Middlewares and layers are registered outermost first.
///
/// ```text
/// // right: the timeout is inside the retry, so each attempt has its own
/// builder.model_layer(retry).model_layer(TimeoutLayer::new(minute))
/// // wrong: one minute for all attempts together, and the retry never sees the timeout
/// builder.model_layer(TimeoutLayer::new(minute)).model_layer(retry)
/// ```
#[derive(Clone)]
#[must_use]
pub struct AgentBuilder {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) system: Option<SystemMessage>,
    pub(crate) prompts: PromptParts,
    pub(crate) items: Vec<Item>,
    pub(crate) for_descendants: Vec<Arc<dyn Middleware>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) server_tools: Vec<ServerTool>,
    pub(crate) toolsets: Vec<Arc<dyn Toolset>>,
    pub(crate) sub_agents: Vec<SubAgent>,
    pub(crate) exit_on: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) raise_tool_errors: bool,
    pub(crate) params: ModelParams,
    pub(crate) stream: bool,
    pub(crate) schema: StateSchema,
    pub(crate) globals: Option<GlobalStorage>,
    pub(crate) resources: Resources,
    pub(crate) budget: Budget,
    pub(crate) deadlines: Deadlines,
    pub(crate) drain: Option<Drain>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) entries_kept: usize,
    pub(crate) when_busy: WhenBusy,
    pub(crate) when_waiting: WhenWaiting,
    pub(crate) migration: Option<Migration>,
    pub(crate) provenance: Provenance,
}

impl AgentBuilder {
    pub(crate) fn new(name: String, model: Arc<dyn Model>) -> Self {
        Self {
            name,
            model,
            system: None,
            prompts: PromptParts::default(),
            items: Vec::new(),
            for_descendants: Vec::new(),
            tools: Vec::new(),
            server_tools: Vec::new(),
            toolsets: Vec::new(),
            sub_agents: Vec::new(),
            exit_on: Vec::new(),
            limits: Limits::default(),
            raise_tool_errors: false,
            params: ModelParams::default(),
            stream: false,
            schema: StateSchema::default(),
            globals: None,
            resources: Resources::default(),
            budget: Budget::default(),
            deadlines: Deadlines::default(),
            drain: None,
            journal: None,
            entries_kept: 4096,
            when_busy: WhenBusy::default(),
            when_waiting: WhenWaiting::default(),
            migration: None,
            provenance: Provenance::default(),
        }
    }

    // --- modify an existing agent ---

    /// Sets another name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets another model.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Arc::new(model);
        self
    }

    /// Removes all tools and tool sets that were added so far.
    pub fn without_tools(mut self) -> Self {
        self.tools.clear();
        self.server_tools.clear();
        self.toolsets.clear();
        self
    }

    /// Removes the middlewares of this name that were added so far.
    pub fn without_middleware(mut self, name: &str) -> Self {
        self.items.retain(|item| !matches!(item, Item::Middleware(m) if m.name() == name));
        self.for_descendants.retain(|m| m.name() != name);
        self
    }

    // --- the model ---

    /// Sets the system prompt. It precedes the history in every model call and is not part of the
    /// history.
    pub fn system(mut self, prompt: impl Into<String>) -> Self {
        self.system = Some(SystemMessage::new(vec![Part::text(prompt)]));
        self
    }

    /// As [`system`](Self::system), with several parts, each of which may be marked for the
    /// provider's cache.
    ///
    /// ```
    /// use agent_core::{Part, SystemMessage, message::{Cache, Text}, testing::ScriptedModel};
    /// use agent_exec::Agent;
    ///
    /// let rules = Part::Text(Text::new("The rules of the house: ..").with_cache(Cache::Long));
    /// let system = SystemMessage::new(vec![rules, Part::text(" Today is Monday.")]);
    /// let agent = Agent::builder("host", ScriptedModel::new([])).system_message(system).build()?;
    /// # drop(agent);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn system_message(mut self, prompt: SystemMessage) -> Self {
        self.system = Some(prompt);
        self
    }

    /// Sets a template of the system prompt, in Jinja syntax. Its variables become inputs of each
    /// run; their values are inserted verbatim, even if they look like templates. The prompt stays
    /// the same for the whole run, even if another process resumes the run.
    ///
    /// ```
    /// use agent_core::{RunRequest, testing::{ScriptedModel, Turn}};
    /// use agent_exec::Agent;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let model = ScriptedModel::new([Turn::text("Guten Tag!")]);
    /// let agent = Agent::builder("greeter", model.clone())
    ///     .system_prompt("Answer in {{ language }}.")
    ///     .user_prompt("Greet {{ name }}.")
    ///     .build()?;
    /// agent.start(RunRequest::new(Vec::new()).input("language", "German").input("name", "Ada")).await?;
    /// assert_eq!(model.requests()[0].texts(), ["Greet Ada."]);
    /// # Ok::<(), agent_core::Error>(()) }).unwrap();
    /// ```
    pub fn system_prompt(mut self, template: impl Into<String>) -> Self {
        self.prompts.system = Some(template.into());
        self
    }

    /// Sets a template of a user message that is appended to the messages of each run.
    pub fn user_prompt(mut self, template: impl Into<String>) -> Self {
        self.prompts.user = Some(template.into());
        self
    }

    /// Sets which variables of the prompts each run must supply. Default: all.
    pub fn required_variables(mut self, required: RequiredVariables) -> Self {
        self.prompts.required = required;
        self
    }

    /// Declares the values that a variable of the prompts accepts, and its default for runs that do
    /// not supply one ([`default_value`](StateField::default_value)). An undeclared variable
    /// accepts any value.
    pub fn input(mut self, name: impl Into<String>, values: StateField) -> Self {
        self.prompts.inputs.insert(name.into(), values);
        self
    }

    /// Sets the model parameters.
    pub fn params(mut self, params: ModelParams) -> Self {
        self.params = params;
        self
    }

    /// Requests streamed responses from the provider, unless a run overrides it. Default: false.
    pub fn streaming(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    // --- tools ---

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds several tools, such as those of a tool set.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Offers a tool that the provider runs itself, such as its web search.
    pub fn server_tool(mut self, tool: impl Into<ServerTool>) -> Self {
        self.server_tools.push(tool.into());
        self
    }

    /// Adds a tool set whose tools may change during a run.
    pub fn toolset(mut self, tools: impl Toolset) -> Self {
        self.toolsets.push(Arc::new(tools));
        self
    }

    /// Adds a sub-agent that code can call by `key`. (The `Delegation` middleware also offers its
    /// own sub-agents to the model.)
    pub fn sub_agent<S>(mut self, key: impl Into<String>, description: impl Into<String>, agent: S) -> Self
    where
        S: Service<RunRequest, Response = RunEnd> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.sub_agents.push(SubAgent::new(key, description, agent));
        self
    }

    /// Sets how many calls of one message run concurrently. Default: 16.
    pub fn tool_concurrency(mut self, most: usize) -> Self {
        self.limits.tool_concurrency = most;
        self
    }

    /// Sets how many bytes of text a tool result may add to the conversation. A longer result is
    /// truncated there, with a note; the journal keeps the whole result. Default: 1 MiB.
    pub fn max_tool_output(mut self, bytes: usize) -> Self {
        self.limits.tool_output = bytes;
        self
    }

    /// Makes a failing or unknown tool end the run with its error, once its sibling calls have
    /// finished. Default: the model receives the error.
    pub fn raise_tool_errors(mut self) -> Self {
        self.raise_tool_errors = true;
        self
    }

    // --- middleware ---

    /// Adds a middleware inside the existing ones.
    pub fn middleware(self, middleware: impl Middleware) -> Self {
        self.add_middleware(Arc::new(middleware), false)
    }

    /// Adds middlewares that may be shared, outermost first, inside the existing ones.
    pub fn middlewares(mut self, middlewares: impl IntoIterator<Item = Arc<dyn Middleware>>) -> Self {
        self.items.extend(middlewares.into_iter().map(Item::Middleware));
        self
    }

    /// Adds a middleware that also applies to every descendant run.
    pub fn middleware_for_all(self, middleware: impl Middleware) -> Self {
        self.add_middleware(Arc::new(middleware), true)
    }

    pub(crate) fn add_middleware(mut self, middleware: Arc<dyn Middleware>, for_all: bool) -> Self {
        if for_all {
            self.for_descendants.push(middleware.clone());
        }
        self.items.push(Item::Middleware(middleware));
        self
    }

    /// Adds any tower layer around the model call, unchanged, inside the existing items.
    pub fn model_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<ModelService> + Send + Sync + 'static,
        L::Service: Service<ModelRequest, Response = ModelResponse> + Clone + Send + Sync + 'static,
        <L::Service as Service<ModelRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ModelRequest>>::Future: Send + 'static,
    {
        let name: Arc<str> = stack::short_name::<L>().into();
        let known = name.clone();
        let apply = Arc::new(move |inner| Named::service(&known, ModelService::new(layer.layer(inner))));
        self.items.push(Item::ModelLayer(name, apply));
        self
    }

    /// Adds any tower layer around every tool call, unchanged, inside the existing items. Each tool
    /// gets its own service.
    pub fn tool_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<ToolService> + Send + Sync + 'static,
        L::Service: Service<ToolRequest, Response = ToolOutput> + Clone + Send + Sync + 'static,
        <L::Service as Service<ToolRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ToolRequest>>::Future: Send + 'static,
    {
        let name: Arc<str> = stack::short_name::<L>().into();
        let known = name.clone();
        let apply = Arc::new(move |inner| Named::service(&known, ToolService::new(layer.layer(inner))));
        self.items.push(Item::ToolLayer(name, apply));
        self
    }

    // --- the loop ---

    /// Sets the maximum number of steps of a run: `n` allows exactly `n` model calls. Default: 100.
    pub fn max_steps(mut self, most: u32) -> Self {
        self.limits.steps = most;
        self
    }

    /// Makes one more call without tools at the step limit, so that the run ends with a text.
    /// Default: false.
    pub fn final_answer(mut self, wanted: bool) -> Self {
        self.limits.final_answer = wanted;
        self
    }

    /// Ends the run when one of these tools returns a result without an error. A text answer always
    /// ends it.
    pub fn exit_on(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exit_on.extend(tools.into_iter().map(Into::into));
        self
    }

    // --- state and limits ---

    /// Declares state keys of a run, besides those that are declared already. Middlewares declare
    /// [their own](Middleware::state).
    pub fn state(mut self, schema: StateSchema) -> Self {
        self.schema = self.schema.with(schema);
        self
    }

    /// Declares one more state key of a run. For code that extends an agent that was defined
    /// elsewhere.
    pub fn state_key(mut self, name: impl Into<String>, field: StateField) -> Self {
        self.schema = self.schema.key(name, field);
        self
    }

    /// Sets the storage that the hierarchy of runs shares; it takes precedence over the one stored
    /// with a session. Default: each run has its own, restored from its session.
    pub fn globals(mut self, globals: GlobalStorage) -> Self {
        self.globals = Some(globals);
        self
    }

    /// Adds a live handle for tools and hooks.
    pub fn resource<T: Any + Send + Sync>(mut self, handle: T) -> Self {
        self.resources = self.resources.with(handle);
        self
    }

    /// Sets the budget of the agent's runs. A sub-agent is charged to its caller's budget as well.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the deadlines of a run and its parts. Default: no deadlines.
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Lets `drain` stop the agent's runs when the application shuts down.
    pub fn drain(mut self, drain: &Drain) -> Self {
        self.drain = Some(drain.clone());
        self
    }

    /// Stores runs in `journal`, and continues the history of a session. Default: each run has an
    /// in-memory journal of its newest [entries](Self::entries_kept).
    pub fn store(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets how many journal entries a run without a [`store`](Self::store) keeps, including those
    /// of its descendants, for event readers that subscribe late or fall behind; 0 keeps none. The
    /// run's own state does not count. Default: 4,096.
    pub fn entries_kept(mut self, most: usize) -> Self {
        self.entries_kept = most;
        self
    }

    /// Sets the policy of a run whose session is held by another run of this agent, unless the run
    /// overrides it. Default: [`WhenBusy::Reject`].
    pub fn when_busy(mut self, policy: WhenBusy) -> Self {
        self.when_busy = policy;
        self
    }

    /// Sets the policy of a run with new messages whose session's newest run waits for answers,
    /// unless the run overrides it. Default: [`WhenWaiting::Reject`].
    pub fn when_waiting(mut self, policy: WhenWaiting) -> Self {
        self.when_waiting = policy;
        self
    }

    /// Sets a function that migrates checkpoints of an earlier version of this agent (another
    /// model, other tools or middleware: another [`fingerprint`](Checkpoint::fingerprint)) to this
    /// version, instead of refusing them. It may rename state keys, for example. It is called
    /// before the run resumes, also from the journal; an error refuses the checkpoint.
    pub fn migrate(mut self, migration: impl Fn(&mut Checkpoint) -> Result<()> + Send + Sync + 'static) -> Self {
        self.migration = Some(Arc::new(migration));
        self
    }

    /// Composes every stack once, so that limits and budgets in layers are shared by all runs.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) with a hint on what to change:
    /// duplicate or invalid tools, exit conditions that no tool can meet, undeclared state, an
    /// impossible order of middlewares, tools for a model that accepts none.
    pub fn build(mut self) -> Result<Agent> {
        let origin = self.clone();
        let middlewares: Middlewares = stack::middlewares(&self.items);
        self.tools.extend(middlewares.iter().flat_map(|m| m.tools()));
        self.sub_agents.extend(middlewares.iter().flat_map(|m| m.sub_agents()));
        for middleware in middlewares.iter() {
            let declared = |e: Error| e.with_context("middleware", middleware.name().to_owned());
            self.schema.extend(middleware.state()).map_err(declared)?;
        }
        check::schema(&mut self.schema)?;
        let deadlines = Arc::new(std::mem::take(&mut self.deadlines));
        let entries = self
            .tools
            .iter()
            .map(|tool| {
                let (items, raise) = (&self.items, self.raise_tool_errors);
                ToolEntry::new(tool.clone(), items, raise, &deadlines, ArgumentSchema::compile)
            })
            .collect::<Result<Vec<_>>>()?;
        check::agent(&self, &middlewares, &entries)?;
        let prompts = Prompts::new(&self.prompts, &self.schema)?;
        let explained = explain::explain(&self, &entries);
        let fingerprint = explain::fingerprint(&self, &entries);
        let (sets, items) = (self.toolsets.clone().into(), self.items.as_slice().into());
        let executor = Executor {
            model: stack::model(&self.items, self.model.clone(), deadlines.clone()),
            model_info: Arc::new(self.model.info()),
            raise_tool_errors: self.raise_tool_errors,
            tools: Tools::new(entries, &self.server_tools, sets, items, self.raise_tool_errors, deadlines.clone()),
            middlewares,
            system: self.system,
            params: Arc::new(self.params),
            exit_on: self.exit_on.into(),
            limits: self.limits,
            deadlines,
        };
        let parts = AgentParts {
            name: self.name.into(),
            executor,
            prompts,
            lifecycle: Lifecycle::new(self.tools, self.toolsets, self.model),
            for_descendants: self.for_descendants.into(),
            sub_agents: self.sub_agents.into_iter().collect(),
            stream: self.stream,
            schema: self.schema,
            globals: self.globals,
            resources: self.resources,
            budget: self.budget,
            drain: self.drain,
            journal: self.journal,
            entries_kept: self.entries_kept,
            when_busy: self.when_busy,
            when_waiting: self.when_waiting,
            locks: Default::default(),
            migration: self.migration,
            fingerprint,
        };
        Ok(Agent { parts: Arc::new(parts), origin: Arc::new(Origin { builder: origin, explained }) })
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("name", &self.name).field("stack", &self.items).finish_non_exhaustive()
    }
}
