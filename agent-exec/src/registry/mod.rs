//! The parts that definitions name.

mod unknown;

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{
    Error, Middleware, Model, Result, StateField, StateSchema, Tool, Toolset, storage::Merge, tool::ServerTool,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::unknown::{PartKind, UnknownPart};
use crate::{
    AgentBuilder,
    definition::{AgentDefinition, FieldDefinition, MiddlewareDefinition},
};

/// Gives the model of a name, none if the name is none of its own.
type FindModel = Arc<dyn Fn(&str) -> Option<Result<Arc<dyn Model>>> + Send + Sync>;

type Make = Arc<dyn Fn(Value) -> Result<Arc<dyn Middleware>> + Send + Sync>;

/// The parts that agents are made of, by name: what an [`AgentDefinition`] names, and what is not data itself.
///
/// A part that several agents have is shared by them.
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
    tools: BTreeMap<String, Arc<dyn Tool>>,
    toolsets: BTreeMap<String, Arc<dyn Toolset>>,
    server_tools: BTreeMap<String, ServerTool>,
    middlewares: BTreeMap<String, Make>,
    handlers: BTreeMap<String, Merge>,
}

impl Registry {
    /// Has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model.
    pub fn model(mut self, name: impl Into<String>, model: impl Model) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Says how a model is had of which the registry has none of the name, such as by `provider:model`: none is an unknown name.
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

    /// Adds a tool under its own name.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.insert(tool.spec().name, Arc::new(tool));
        self
    }

    /// Adds tools under their own names, such as a tool set's.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| (tool.spec().name, tool)));
        self
    }

    /// Adds a set of tools that may change.
    pub fn toolset(mut self, name: impl Into<String>, tools: impl Toolset) -> Self {
        self.toolsets.insert(name.into(), Arc::new(tools));
        self
    }

    /// Adds a tool that the provider of the model runs, under its own name: it takes the place of the one of that name in a
    /// definition. So a remote server is opened with secrets, which no definition holds.
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

    /// Adds a middleware that takes no configuration: one for all agents that name it.
    pub fn middleware(mut self, name: impl Into<String>, middleware: impl Middleware) -> Self {
        let (name, middleware) = (name.into(), Arc::new(middleware) as Arc<dyn Middleware>);
        let make = {
            let name = name.clone();
            move |config: Value| match config {
                Value::Null => Ok(middleware.clone()),
                _ => Err(Error::config(format!("middleware '{name}' takes no configuration"))),
            }
        };
        self.middlewares.insert(name, Arc::new(make));
        self
    }

    /// Adds a middleware that is made from a configuration, for each agent that names it. A definition without one makes it
    /// from an empty object.
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
        let make = {
            let name = name.clone();
            move |config: Value| {
                let config = if config.is_null() { Value::Object(Default::default()) } else { config };
                let config = serde_json::from_value(config)
                    .map_err(|e| Error::config(format!("the configuration of middleware '{name}' is wrong: {e}")))?;
                Ok(Arc::new(make(config)?) as Arc<dyn Middleware>)
            }
        };
        self.middlewares.insert(name, Arc::new(make));
        self
    }

    /// Adds a rule by which new values of the state join the old.
    pub fn handler(mut self, name: impl Into<String>, rule: Merge) -> Self {
        self.handlers.insert(name.into(), rule);
        self
    }

    /// Begins the agent that a definition describes; the rest, such as a store, can be given to the builder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config): a name that the registry does not have ([`UnknownPart`]), a
    /// configuration that does not fit, or what is wrong with a sub-agent.
    pub fn builder(&self, definition: &AgentDefinition) -> Result<AgentBuilder> {
        let d = definition;
        let model = match find(&self.models, PartKind::Model, &d.model) {
            Ok(model) => model.clone(),
            Err(unknown) => self.find_model.as_ref().and_then(|find| find(&d.model)).unwrap_or(Err(unknown))?,
        };
        let mut builder = AgentBuilder::new(d.name.clone(), model.clone());
        builder.provenance.model = Some((model.clone(), d.model.clone()));
        for name in &d.tools {
            let tool = find(&self.tools, PartKind::Tool, name)?;
            builder.provenance.tools.push((tool.clone(), name.clone()));
            builder.tools.push(tool.clone());
        }
        for tool in &d.server_tools {
            let needs_secrets = matches!(tool, ServerTool::Mcp(server) if server.has_secrets);
            builder.server_tools.push(match find(&self.server_tools, PartKind::ServerTool, tool.name()) {
                Ok(known) => known.clone(),
                Err(unknown) if needs_secrets => return Err(unknown),
                Err(_) => tool.clone(),
            });
        }
        for name in &d.toolsets {
            let toolset = find(&self.toolsets, PartKind::Toolset, name)?;
            builder.provenance.toolsets.push((toolset.clone(), name.clone()));
            builder.toolsets.push(toolset.clone());
        }
        for definition in &d.middleware {
            builder = self.middleware_of(builder, definition)?;
        }
        for (key, sub_agent) in &d.sub_agents {
            let agent = self.builder(&sub_agent.agent).and_then(AgentBuilder::build);
            let agent = agent.map_err(|e| e.map_message(|why| format!("sub-agent '{key}': {why}")))?;
            builder = builder.sub_agent(key, &sub_agent.description, agent);
            builder.provenance.sub_agents.insert(key.clone(), sub_agent.clone());
        }
        if let Some(text) = &d.system {
            builder = builder.system(text);
        }
        builder.prompts.system.clone_from(&d.system_prompt);
        builder.prompts.user.clone_from(&d.user_prompt);
        builder.prompts.required.clone_from(&d.required_variables);
        for (name, field) in &d.inputs {
            let field = self.field(&mut builder, field)?;
            builder = builder.input(name, field);
        }
        let mut state = StateSchema::default();
        for (name, field) in &d.state {
            state = state.key(name, self.field(&mut builder, field)?);
        }
        builder = builder.state(state).exit_on(&d.exit_on).max_steps(d.max_steps).final_answer(d.final_answer);
        builder = builder.tool_concurrency(d.tool_concurrency).max_tool_output(d.max_tool_output);
        builder.raise_tool_errors = d.raise_tool_errors;
        builder = builder.streaming(d.streaming).params(d.params.clone());
        Ok(builder.deadlines(d.deadlines.clone()).when_busy(d.when_busy))
    }

    fn middleware_of(&self, mut builder: AgentBuilder, definition: &MiddlewareDefinition) -> Result<AgentBuilder> {
        let make = find(&self.middlewares, PartKind::Middleware, &definition.name)?;
        let middleware = make(definition.config.clone())?;
        builder.provenance.middlewares.push((middleware.clone(), definition.clone()));
        Ok(builder.add_middleware(middleware, definition.for_all))
    }

    fn field(&self, builder: &mut AgentBuilder, definition: &FieldDefinition) -> Result<StateField> {
        let mut field = StateField::schema(definition.schema.clone());
        let merge = match definition.merge.as_deref() {
            None => None,
            Some("replace") => Some(Merge::Replace),
            Some("append") => Some(Merge::Append),
            Some("merge") => Some(Merge::Merge),
            Some(name) => {
                let rule = find(&self.handlers, PartKind::Handler, name)?;
                builder.provenance.handlers.push((rule.clone(), name.to_owned()));
                Some(rule.clone())
            }
        };
        if let Some(merge) = merge {
            field = field.merge(merge);
        }
        if let Some(value) = &definition.default {
            field = field.default_value(value.clone());
        }
        Ok(field)
    }
}

fn find<'a, T>(parts: &'a BTreeMap<String, T>, kind: PartKind, name: &str) -> Result<&'a T> {
    parts.get(name).ok_or_else(|| UnknownPart::new(kind, name, parts.keys().cloned()).into())
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
