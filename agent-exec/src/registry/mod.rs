//! Registry of the parts that definitions refer to by name.

mod assemble;
mod problem;
mod unknown;

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{
    Error, Middleware, Model, Result, StateField, SubAgent, Tool, Toolset, storage::Merge, tool::ServerTool,
};
use agent_tools::ToolSet;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::{
    assemble::{Made, settings},
    problem::Problems,
};
pub use self::{
    problem::DefinitionProblem,
    unknown::{PartKind, UnknownPart},
};
use crate::{
    AgentBuilder,
    definition::{AgentDefinition, FieldDefinition, ModelDefinition, PartDefinition},
};

/// Finds the model of a name; returns `None` for an unknown name.
type FindModel = Arc<dyn Fn(&str) -> Option<Result<Arc<dyn Model>>> + Send + Sync>;

/// Makes a part from its configuration, which may be null.
type Make<T> = Arc<dyn Fn(&Value) -> Result<T> + Send + Sync>;

/// A merge rule that is code, with its name.
type InCode = (Merge, String);

/// As [`Make`], for a part that may depend on other parts of its agent.
type MakeFrom<T> = Arc<dyn Fn(&Value, AgentSoFar<'_>) -> Result<T> + Send + Sync>;

/// The parts of an agent that exist when its tool sets and its middleware are made.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct AgentSoFar<'a> {
    /// The agent's model.
    pub model: &'a Arc<dyn Model>,
    /// The agent's sub-agents; empty while tool sets are made. Sub-agents that a middleware
    /// [offers](Middleware::sub_agents) belong to that middleware only.
    pub sub_agents: &'a [SubAgent],
    /// The registry, for a part that uses another model than the agent's.
    pub registry: &'a Registry,
}

impl fmt::Debug for AgentSoFar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSoFar")
            .field("model", &self.model.info().name)
            .field("sub_agents", &self.sub_agents)
            .finish_non_exhaustive()
    }
}

/// The parts of agents by name: everything that an [`AgentDefinition`] refers to and that is not
/// data itself.
///
/// Agents that name the same part share it.
///
/// ```
/// use agent_core::{storage::Merge, testing::ScriptedModel};
/// use agent_exec::Registry;
/// use agent_middleware::{Approval, Limits, approval::ApprovalConfig, limits::LimitsConfig};
///
/// let registry = Registry::new()
///     .model("small", ScriptedModel::new([]))
///     .middleware_with("limits", |config: LimitsConfig| Ok(Limits::from(config)))
///     .middleware_with("approval", |config: ApprovalConfig| Ok(Approval::from(config)))
///     .handler("newest", Merge::Replace);
/// # drop(registry);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Registry {
    models: BTreeMap<String, Arc<dyn Model>>,
    find_model: Option<FindModel>,
    make_model: Option<Make<Arc<dyn Model>>>,
    tools: BTreeMap<String, Make<Vec<Arc<dyn Tool>>>>,
    toolsets: BTreeMap<String, MakeFrom<Arc<dyn Toolset>>>,
    server_tools: BTreeMap<String, ServerTool>,
    middlewares: BTreeMap<String, MakeFrom<Arc<dyn Middleware>>>,
    handlers: BTreeMap<String, Merge>,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model.
    pub fn model(mut self, name: impl Into<String>, model: impl Model) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Sets the function that finds models whose names are not registered, for example by
    /// `provider:model`. It returns `None` for an unknown name.
    ///
    /// ```
    /// use agent_core::testing::{ScriptedModel, Turn};
    /// use agent_exec::{AgentDefinition, Registry};
    ///
    /// let script = |name: &str| Some(Ok(ScriptedModel::new([Turn::text(name.strip_prefix("script:")?)])));
    /// let registry = Registry::new().models(script);
    /// let definition = r#"{"name": "greeter", "model": "script:hello"}"#;
    /// let definition: AgentDefinition = serde_json::from_str(definition).unwrap();
    /// let agent = registry.builder(&definition)?.build()?;
    /// assert_eq!(agent.definition()?, definition);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn models<M: Model>(mut self, find: impl Fn(&str) -> Option<Result<M>> + Send + Sync + 'static) -> Self {
        let find = move |name: &str| Some(find(name)?.map(|model| Arc::new(model) as Arc<dyn Model>));
        self.find_model = Some(Arc::new(find));
        self
    }

    /// Sets the function that makes the models configured in definitions. Its argument is the
    /// configuration with the model's name as `name`.
    ///
    /// ```
    /// use agent_core::testing::{ScriptedModel, Turn};
    /// use agent_exec::{AgentDefinition, Registry};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Script { name: String, times: usize }
    ///
    /// let registry = Registry::new()
    ///     .models_with(|script: Script| Ok(ScriptedModel::new(vec![Turn::text(script.name); script.times])));
    /// let definition = r#"{"name": "greeter", "model": {"name": "hello", "times": 3}}"#;
    /// let definition: AgentDefinition = serde_json::from_str(definition).unwrap();
    /// assert_eq!(registry.builder(&definition)?.build()?.definition()?, definition);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn models_with<C, M>(mut self, make: impl Fn(C) -> Result<M> + Send + Sync + 'static) -> Self
    where
        C: DeserializeOwned,
        M: Model,
    {
        self.make_model =
            Some(made("the model".to_owned(), move |config| Ok(Arc::new(make(config)?) as Arc<dyn Model>)));
        self
    }

    /// Adds a tool under its own name.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds several tools under their own names, such as those of a tool set.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        for tool in tools {
            let name = tool.spec().name;
            self.tools.insert(name.clone(), shared(format!("tool '{name}'"), vec![tool]));
        }
        self
    }

    /// Adds tools that are made from a configuration, once for each agent that names them. Without
    /// a configuration they are made from an empty object.
    ///
    /// ```
    /// use agent_core::testing::ScriptedModel;
    /// use agent_exec::{AgentDefinition, Registry};
    /// use agent_tools::Workspace;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Folder { path: String }
    ///
    /// let registry = Registry::new()
    ///     .model("small", ScriptedModel::new([]))
    ///     .tools_with("workspace", |folder: Folder| Ok(Workspace::open(folder.path)?.tools()));
    /// let definition = r#"{"name": "reader", "model": "small", "tools": [{"workspace": {"path": "."}}]}"#;
    /// let definition: AgentDefinition = serde_json::from_str(definition).unwrap();
    /// assert_eq!(registry.builder(&definition)?.build()?.definition()?, definition);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn tools_with<C: DeserializeOwned>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(C) -> Result<ToolSet> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let make = made(format!("tools '{name}'"), move |config| Ok(make(config)?.into_iter().collect()));
        self.tools.insert(name, make);
        self
    }

    /// Adds a tool set whose tools may change.
    pub fn toolset(mut self, name: impl Into<String>, tools: impl Toolset) -> Self {
        let name = name.into();
        let make = shared(format!("tool set '{name}'"), Arc::new(tools) as Arc<dyn Toolset>);
        self.toolsets.insert(name, Arc::new(move |config, _| make(config)));
        self
    }

    /// Adds a tool set whose tools may change, made from a configuration for each agent that names
    /// it.
    pub fn toolset_with<C, T>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(C) -> Result<T> + Send + Sync + 'static,
    ) -> Self
    where
        C: DeserializeOwned,
        T: Toolset,
    {
        let name = name.into();
        let make = made(format!("tool set '{name}'"), move |config| Ok(Arc::new(make(config)?) as Arc<dyn Toolset>));
        self.toolsets.insert(name, Arc::new(move |config, _| make(config)));
        self
    }

    /// As [`toolset_with`](Self::toolset_with), for a tool set that may call the agent's model or
    /// another model of the registry. A missing configuration is null.
    pub fn toolset_by(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&Value, AgentSoFar<'_>) -> Result<Arc<dyn Toolset>> + Send + Sync + 'static,
    ) -> Self {
        self.toolsets.insert(name.into(), Arc::new(make));
        self
    }

    /// Adds a tool that the model's provider runs, under its own name. It replaces the tool of that
    /// name in a definition. This supplies the credentials of a remote server, which definitions do
    /// not contain.
    ///
    /// ```
    /// use agent_core::{testing::ScriptedModel, tool::RemoteMcp};
    /// use agent_exec::{AgentDefinition, Registry};
    ///
    /// let wiki = RemoteMcp::new("wiki", "https://mcp.acme.example").authorization("a-token");
    /// let registry = Registry::new().model("small", ScriptedModel::new([]));
    /// let text = r#"{"name": "a", "model": "small",
    ///     "server_tools": [{"mcp": {"name": "wiki", "url": "https://mcp.acme.example", "has_secrets": true}}]}"#;
    /// let definition: AgentDefinition = serde_json::from_str(text).unwrap();
    /// assert!(registry.builder(&definition).is_err(), "nobody told it the token");
    /// assert!(registry.server_tool(wiki).builder(&definition).is_ok());
    /// ```
    pub fn server_tool(mut self, tool: impl Into<ServerTool>) -> Self {
        let tool = tool.into();
        self.server_tools.insert(tool.name().to_owned(), tool);
        self
    }

    /// Adds a middleware without a configuration: one instance for all agents that name it.
    pub fn middleware(mut self, name: impl Into<String>, middleware: impl Middleware) -> Self {
        let name = name.into();
        let make = shared(format!("middleware '{name}'"), Arc::new(middleware) as Arc<dyn Middleware>);
        self.middlewares.insert(name, Arc::new(move |config, _| make(config)));
        self
    }

    /// Adds a middleware that is made from a configuration, for each agent that names it. Without a
    /// configuration it is made from an empty object.
    pub fn middleware_with<C, M>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(C) -> Result<M> + Send + Sync + 'static,
    ) -> Self
    where
        C: DeserializeOwned,
        M: Middleware,
    {
        let name = name.into();
        let make =
            made(format!("middleware '{name}'"), move |config| Ok(Arc::new(make(config)?) as Arc<dyn Middleware>));
        self.middlewares.insert(name, Arc::new(move |config, _| make(config)));
        self
    }

    /// As [`middleware_with`](Self::middleware_with), for a middleware that may call the agent's
    /// model (to judge, select or summarise) or that offers the agent's sub-agents. The
    /// configuration may be null.
    ///
    /// ```
    /// use agent_core::testing::ScriptedModel;
    /// use agent_exec::{AgentDefinition, Registry};
    /// use agent_middleware::Builtin;
    ///
    /// let registry = Registry::new().model("small", ScriptedModel::new([]));
    /// let registry = Builtin::all().iter().fold(registry, |registry, builtin| {
    ///     registry.middleware_by(builtin.name(), |config, from| builtin.make(config.clone(), from.model, from.sub_agents))
    /// });
    /// let definition = r#"{"name": "a", "model": "small", "middleware": [{"judge": {"max_rounds": 1}}]}"#;
    /// let definition: AgentDefinition = serde_json::from_str(definition).unwrap();
    /// assert_eq!(registry.builder(&definition)?.build()?.definition()?, definition);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn middleware_by(
        mut self,
        name: impl Into<String>,
        make: impl Fn(&Value, AgentSoFar<'_>) -> Result<Arc<dyn Middleware>> + Send + Sync + 'static,
    ) -> Self {
        self.middlewares.insert(name.into(), Arc::new(make));
        self
    }

    /// Adds a merge rule for state values.
    pub fn handler(mut self, name: impl Into<String>, rule: Merge) -> Self {
        self.handlers.insert(name.into(), rule);
        self
    }

    /// Returns a builder for the agent that a definition describes. Add the rest, such as a store,
    /// to the builder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) with
    /// [all problems](DefinitionProblem::of): names that are not registered ([`UnknownPart`]),
    /// invalid configurations, and the problems of sub-agents.
    pub fn builder(&self, definition: &AgentDefinition) -> Result<AgentBuilder> {
        Ok(settings(Made::of(self, definition)?.builder(definition), definition))
    }

    /// Returns the model of a name.
    ///
    /// # Errors
    /// [`UnknownPart`], and the errors of [the function for other names](Self::models).
    pub fn find_model(&self, name: &str) -> Result<Arc<dyn Model>> {
        match self.models.get(name) {
            Some(model) => Ok(model.clone()),
            None => {
                self.find_model.as_ref().and_then(|find| find(name)).unwrap_or_else(|| Err(self.unknown_model(name)))
            }
        }
    }

    /// Returns the model that a definition names, made by the function of
    /// [`models_with`](Self::models_with) if it has a configuration.
    ///
    /// # Errors
    /// As [`find_model`](Self::find_model), and the errors of making the model.
    pub fn make_model(&self, definition: &ModelDefinition) -> Result<Arc<dyn Model>> {
        match &self.make_model {
            _ if definition.config.is_empty() => self.find_model(&definition.name),
            Some(make) => make(&definition.made_from()),
            None => Err(self.unknown_model(&definition.name)),
        }
    }

    fn unknown_model(&self, name: &str) -> Error {
        UnknownPart::new(PartKind::Model, name, self.models.keys().cloned()).into()
    }

    fn server_tool_of(&self, tool: &ServerTool) -> Result<ServerTool> {
        let needs_secrets = matches!(tool, ServerTool::Mcp(server) if server.has_secrets);
        match self.server_tools.get(tool.name()) {
            Some(known) => Ok(known.clone()),
            None if needs_secrets => {
                Err(UnknownPart::new(PartKind::ServerTool, tool.name(), self.server_tools.keys().cloned()).into())
            }
            None => Ok(tool.clone()),
        }
    }

    /// Returns the fields, with their merge rules that are code.
    fn fields(
        &self,
        place: &str,
        definitions: &BTreeMap<String, FieldDefinition>,
        problems: &mut Problems,
    ) -> Vec<(String, StateField, Option<InCode>)> {
        let fields = definitions.iter().filter_map(|(name, definition)| {
            let (field, rule) = problems.at(format_args!("{place}/{name}"), self.field(definition))?;
            Some((name.clone(), field, rule))
        });
        fields.collect()
    }

    fn field(&self, definition: &FieldDefinition) -> Result<(StateField, Option<InCode>)> {
        let mut field = StateField::schema(definition.schema.clone());
        let mut of_code = None;
        let merge = match definition.merge.as_deref() {
            None => None,
            Some("replace") => Some(Merge::Replace),
            Some("append") => Some(Merge::Append),
            Some("merge") => Some(Merge::Merge),
            Some(name) => {
                let known = || UnknownPart::new(PartKind::Handler, name, self.handlers.keys().cloned());
                let rule = self.handlers.get(name).ok_or_else(known)?;
                of_code = Some((rule.clone(), name.to_owned()));
                Some(rule.clone())
            }
        };
        if let Some(merge) = merge {
            field = field.merge(merge);
        }
        if let Some(value) = &definition.default {
            field = field.default_value(value.clone());
        }
        Ok((field, of_code))
    }
}

/// Shares one part among all agents that name it.
fn shared<T: Clone + Send + Sync + 'static>(what: String, part: T) -> Make<T> {
    Arc::new(move |config| match config {
        Value::Null => Ok(part.clone()),
        _ => Err(Error::config(format!("{what} takes no configuration"))),
    })
}

/// Makes a new part for each agent that names it.
fn made<C: DeserializeOwned, T: 'static>(
    what: String,
    make: impl Fn(C) -> Result<T> + Send + Sync + 'static,
) -> Make<T> {
    Arc::new(move |config| {
        let config =
            if config.is_null() { C::deserialize(Value::Object(Default::default())) } else { C::deserialize(config) };
        make(config.map_err(|e| Error::config(format!("the configuration of {what} is wrong: {e}")))?)
    })
}

fn find<'a, T>(parts: &'a BTreeMap<String, T>, kind: PartKind, part: &PartDefinition) -> Result<&'a T> {
    let unknown = || UnknownPart::new(kind, &part.name, parts.keys().cloned()).into();
    parts.get(&part.name).ok_or_else(unknown)
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("models", &self.models.keys())
            .field("tools", &self.tools.keys())
            .field("toolsets", &self.toolsets.keys())
            .field("server_tools", &self.server_tools.keys())
            .field("middlewares", &self.middlewares.keys())
            .field("handlers", &self.handlers.keys())
            .finish()
    }
}
