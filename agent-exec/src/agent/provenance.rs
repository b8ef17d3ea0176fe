//! Converts an agent back to its definition.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Error, Middleware, Model, Result, StateField, Tool, Toolset, storage::Merge};

use super::AgentBuilder;
use crate::{
    definition::{
        AgentDefinition, FieldDefinition, ModelDefinition, PartDefinition, SubAgentDefinition, SystemDefinition,
    },
    stack::Item,
};

/// The registry names of a builder's parts.
#[derive(Clone, Default)]
pub(crate) struct Provenance {
    pub(crate) model: Option<(Arc<dyn Model>, ModelDefinition)>,
    /// Tools made by one configuration are adjacent and share a part.
    pub(crate) tools: Vec<(Arc<dyn Tool>, PartDefinition)>,
    pub(crate) toolsets: Vec<(Arc<dyn Toolset>, PartDefinition)>,
    pub(crate) middlewares: Vec<(Arc<dyn Middleware>, PartDefinition)>,
    pub(crate) handlers: Vec<(Merge, String)>,
    pub(crate) sub_agents: BTreeMap<String, SubAgentDefinition>,
}

/// Returns the registry name of a part, if it has one.
fn name_of<'a, T: ?Sized, N>(known: &'a [(Arc<T>, N)], part: &Arc<T>) -> Option<&'a N> {
    known.iter().find(|(known, _)| Arc::ptr_eq(known, part)).map(|(_, name)| name)
}

/// Returns the definition of a builder's agent.
///
/// # Errors
/// The parts that have no name in a registry.
pub(super) fn define(builder: &AgentBuilder) -> Result<AgentDefinition> {
    let mut nameless = Nameless(Vec::new());
    let from = &builder.provenance;
    let model = from.model.iter().find(|(model, _)| Arc::ptr_eq(model, &builder.model)).map(|(_, name)| name.clone());
    let model = nameless.expect(model, || format!("model '{}'", builder.model.info().name));
    let tool = |tool| (name_of(&from.tools, tool).cloned(), format!("tool '{}'", tool.spec().name));
    let tools = builder.tools.iter().map(tool).filter_map(|(name, what)| nameless.expect(name, || what));
    let mut tools: Vec<PartDefinition> = tools.collect();
    tools.dedup();
    let toolset = |set| name_of(&from.toolsets, set).cloned();
    let toolsets = builder.toolsets.iter().filter_map(|set| nameless.expect(toolset(set), || "a tool set".to_owned()));
    let toolsets = toolsets.collect();
    let middleware = |item: &Item| match item {
        Item::Middleware(middleware) => name_of(&from.middlewares, middleware).cloned(),
        Item::ModelLayer(..) | Item::ToolLayer(..) => None,
    };
    let items = builder.items.iter();
    let middleware = items.filter_map(|item| nameless.expect(middleware(item), || format!("middleware {item:?}")));
    let middleware = middleware.collect();
    for agent in builder.sub_agents.iter().filter(|agent| !from.sub_agents.contains_key(&agent.key)) {
        nameless.0.push(format!("sub-agent '{}'", agent.key));
    }
    let sub_agents = from.sub_agents.clone();
    let inputs = builder.prompts.inputs.iter();
    let inputs = inputs.filter_map(|(name, field)| nameless.field("run input", name, field, from)).collect();
    let state = builder.schema.keys().filter_map(|name| builder.schema.get(name).map(|field| (name, field)));
    let state = state.filter_map(|(name, field)| nameless.field("state key", name, field, from)).collect();
    let system = builder.system.as_ref();
    let system = system.and_then(|message| {
        nameless.expect(SystemDefinition::of(message), || "a system prompt that is no text".to_owned())
    });
    let model = model.filter(|_| nameless.0.is_empty()).ok_or_else(|| nameless.error())?;
    Ok(AgentDefinition {
        name: builder.name.clone(),
        model,
        system,
        system_prompt: builder.prompts.system.clone(),
        user_prompt: builder.prompts.user.clone(),
        required_variables: builder.prompts.required.clone(),
        inputs,
        state,
        tools,
        toolsets,
        server_tools: builder.server_tools.clone(),
        middleware,
        sub_agents,
        exit_on: builder.exit_on.clone(),
        max_steps: builder.limits.steps,
        final_answer: builder.limits.final_answer,
        tool_concurrency: builder.limits.tool_concurrency,
        max_tool_output: builder.limits.tool_output,
        raise_tool_errors: builder.raise_tool_errors,
        streaming: builder.stream,
        params: builder.params.clone(),
        deadlines: builder.deadlines.clone(),
        when_busy: builder.when_busy,
        when_waiting: builder.when_waiting,
    })
}

/// The parts that cannot be expressed as data.
struct Nameless(Vec<String>);

impl Nameless {
    fn expect<T>(&mut self, name: Option<T>, what: impl FnOnce() -> String) -> Option<T> {
        if name.is_none() {
            self.0.push(what());
        }
        name
    }

    fn field(
        &mut self,
        kind: &str,
        name: &str,
        field: &StateField,
        from: &Provenance,
    ) -> Option<(String, FieldDefinition)> {
        let definition = field.json_schema().zip(merge(field.merge_rule(), from)).map(|(schema, merge)| {
            FieldDefinition { schema: schema.clone(), merge: Some(merge), default: field.start_value().cloned() }
        });
        let definition =
            self.expect(definition, || format!("{kind} '{name}', which has no JSON Schema or a rule in code"));
        definition.map(|definition| (name.to_owned(), definition))
    }

    fn error(&self) -> Error {
        let parts = self.0.join(", ");
        Error::config(format!("the agent is not data: these parts are not from a registry: {parts}"))
    }
}

fn merge(rule: &Merge, from: &Provenance) -> Option<String> {
    Some(match rule {
        Merge::Replace => "replace".to_owned(),
        Merge::Append => "append".to_owned(),
        Merge::Merge => "merge".to_owned(),
        Merge::Custom(rule) => {
            let is_this = |known: &Merge| matches!(known, Merge::Custom(known) if Arc::ptr_eq(known, rule));
            from.handlers.iter().find(|(known, _)| is_this(known))?.1.clone()
        }
        _ => return None,
    })
}
