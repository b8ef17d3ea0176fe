//! The parts that files name.

use std::{collections::BTreeMap, fmt, sync::Arc};

use agent_core::{Middleware, Model, Result, Tool, Toolset, storage::Merge, tool::ServerTool};
use agent_exec::{AgentSoFar, Registry as Parts};
use agent_tools::ToolSet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::parts;

/// Says what the configuration of a part is.
pub(super) type SchemaOf = Arc<dyn Fn(&mut SchemaGenerator) -> Schema + Send + Sync>;

/// The parts that files name: models, tools and middleware, each with what its configuration is.
///
/// [`builtin`](Self::builtin) has the framework's; a program adds its own, which a file names and configures in the same way:
///
/// ```
/// use agent::{config::{Format, Loader, Registry}, middleware::{Limits, limits::LimitsConfig}, prelude::*, testing::ScriptedModel};
///
/// /// Adds two numbers.
/// #[tool]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// /// How strict it is.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Strictness { calls: u32 }
///
/// let registry = Registry::builtin()
///     .model("small", ScriptedModel::new([]))
///     .tool(add)
///     .middleware_with("strict", |config: Strictness| Ok(Limits::new().model_calls(config.calls)));
/// let file = "{name: clerk, model: small, tools: [add], middleware: [strict: {calls: 3}]}";
/// let agent = Loader::new().registry(registry.clone()).read(file, Format::Yaml)?.into_builder().build()?;
/// assert_eq!(agent.tools()[0].name, "add");
///
/// let wrong = "{name: clerk, model: small, middleware: [strict: {call: 3}]}";
/// let problems = Loader::new().registry(registry).read(wrong, Format::Yaml).unwrap_err();
/// assert!(problems.to_string().contains("did you mean 'calls'?"), "{problems}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Registry {
    pub(super) parts: Parts,
    pub(super) tools: BTreeMap<String, SchemaOf>,
    pub(super) toolsets: BTreeMap<String, SchemaOf>,
    pub(super) middlewares: BTreeMap<String, SchemaOf>,
    /// Names of tools for which a file may set a permission.
    pub(super) naming: BTreeMap<String, Naming>,
}

/// Naming of the tools of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// One, by the key `name`, or else as the part is.
    Tool,
    /// Several, of which the key `change` speaks one by one.
    Set,
    /// Those of a server, which all begin with the key `prefix`, or with the key `name`.
    Server,
}

impl Registry {
    /// Has models by name, `provider:model`, and nothing else.
    pub fn new() -> Self {
        let parts = Parts::new().models(parts::model::by_name);
        Self { parts, ..Self::default() }
    }

    /// Has what the framework brings, as far as its features are on.
    pub fn builtin() -> Self {
        parts::middleware::register(parts::tools::register(Self::new()))
    }

    /// Adds a model under a name.
    pub fn model(mut self, name: impl Into<String>, model: impl Model) -> Self {
        self.parts = self.parts.model(name, model);
        self
    }

    /// Adds a tool under its own name.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds tools under their own names, such as a tool set's. A file may give each other words and fixed arguments.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        for tool in tools {
            let name = tool.spec().name;
            let change = move |change: parts::change::ToolChange| {
                Ok(ToolSet::new(tool.spec().name).shared(change.applied(tool.clone())?))
            };
            self = self.tools_with(name.as_str(), change).named(&name, Naming::Tool);
        }
        self
    }

    /// Adds tools that are made from a configuration, for each agent that names them.
    pub fn tools_with<C: DeserializeOwned + JsonSchema + 'static>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(C) -> Result<ToolSet> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        self.tools.insert(name.clone(), Arc::new(schema_of::<C>));
        self.naming.remove(&name);
        self.parts = self.parts.tools_with(name, make);
        self
    }

    /// Says how the tools of a part are called.
    pub(super) fn named(mut self, part: &str, naming: Naming) -> Self {
        self.naming.insert(part.to_owned(), naming);
        self
    }

    /// Adds a set of tools that may change during a run.
    pub fn toolset(mut self, name: impl Into<String>, tools: impl Toolset) -> Self {
        let name = name.into();
        self.toolsets.insert(name.clone(), Arc::new(|_| json_schema!({"type": "null"})));
        self.parts = self.parts.toolset(name, tools);
        self
    }

    /// Adds a set of tools that may change, made from a configuration for each agent that names it.
    pub fn toolset_with<C, T>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(C) -> Result<T> + Send + Sync + 'static,
    ) -> Self
    where
        C: DeserializeOwned + JsonSchema + 'static,
        T: Toolset,
    {
        let name = name.into();
        self.toolsets.insert(name.clone(), Arc::new(schema_of::<C>));
        self.naming.remove(&name);
        self.parts = self.parts.toolset_with(name, make);
        self
    }

    /// Adds a tool that the provider of the model runs, under its own name.
    pub fn server_tool(mut self, tool: impl Into<ServerTool>) -> Self {
        self.parts = self.parts.server_tool(tool);
        self
    }

    /// Adds a middleware that takes no configuration: one for all agents that name it.
    pub fn middleware(mut self, name: impl Into<String>, middleware: impl Middleware) -> Self {
        let name = name.into();
        self.middlewares.insert(name.clone(), Arc::new(|_| json_schema!({"type": "null"})));
        self.parts = self.parts.middleware(name, middleware);
        self
    }

    /// Adds a middleware that is made from a configuration, for each agent that names it.
    pub fn middleware_with<C, M>(
        mut self,
        name: impl Into<String>,
        make: impl Fn(C) -> Result<M> + Send + Sync + 'static,
    ) -> Self
    where
        C: DeserializeOwned + JsonSchema + 'static,
        M: Middleware,
    {
        let name = name.into();
        self.middlewares.insert(name.clone(), Arc::new(schema_of::<C>));
        self.parts = self.parts.middleware_with(name, make);
        self
    }

    /// Adds a set of tools that is made from a configuration and from what there is of its agent.
    #[cfg(feature = "mcp")]
    pub(super) fn toolset_made<C, T>(
        mut self,
        name: &str,
        make: impl Fn(C, AgentSoFar<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Self
    where
        C: DeserializeOwned + JsonSchema + 'static,
        T: Toolset,
    {
        self.toolsets.insert(name.to_owned(), Arc::new(schema_of::<C>));
        let wrong = format!("the configuration of tool set '{name}' is wrong");
        let make = move |config: &Value, from: AgentSoFar<'_>| {
            let config = C::deserialize(config).map_err(|e| agent_core::Error::config(format!("{wrong}: {e}")))?;
            Ok(Arc::new(make(config, from)?) as Arc<dyn Toolset>)
        };
        self.parts = self.parts.toolset_by(name, make);
        self
    }

    /// Adds a middleware that is made from what a schema describes and from what there is of its agent.
    pub(super) fn middleware_made<M: Middleware>(
        mut self,
        name: &str,
        schema: impl Fn(&mut SchemaGenerator) -> Schema + Send + Sync + 'static,
        make: impl Fn(&Value, AgentSoFar<'_>) -> Result<M> + Send + Sync + 'static,
    ) -> Self {
        self.middlewares.insert(name.to_owned(), Arc::new(schema));
        let make = move |config: &Value, from: AgentSoFar<'_>| Ok(Arc::new(make(config, from)?) as Arc<dyn Middleware>);
        self.parts = self.parts.middleware_by(name, make);
        self
    }

    /// Adds a rule by which new values of the state join the old.
    pub fn handler(mut self, name: impl Into<String>, rule: Merge) -> Self {
        self.parts = self.parts.handler(name, rule);
        self
    }
}

fn schema_of<C: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<C>()
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.fmt(f)
    }
}
