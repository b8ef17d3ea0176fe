//! Converts a definition to an agent builder: first makes all parts, then combines them.

use std::{collections::BTreeSet, sync::Arc};

use agent_core::{Middleware, Model, Result, StateField, StateSchema, SubAgent, Tool, Toolset, tool::ServerTool};

use super::{AgentSoFar, InCode, PartKind, Problems, Registry, find};
use crate::{
    AgentBuilder,
    definition::{AgentDefinition, PartDefinition},
};

/// A made part, with its definition.
type Of<'a, T> = (T, &'a PartDefinition);

/// A field with its name, and its merge rule if the rule is code.
type Field = (String, StateField, Option<InCode>);

/// All parts of an agent.
pub(super) struct Made<'a> {
    model: Arc<dyn Model>,
    tools: Vec<Of<'a, Vec<Arc<dyn Tool>>>>,
    server_tools: Vec<ServerTool>,
    toolsets: Vec<Of<'a, Arc<dyn Toolset>>>,
    sub_agents: Vec<SubAgent>,
    middlewares: Vec<Of<'a, Arc<dyn Middleware>>>,
    inputs: Vec<Field>,
    state: Vec<Field>,
}

impl<'a> Made<'a> {
    /// Makes the parts of `d`.
    ///
    /// # Errors
    /// All problems of the definition.
    pub(super) fn of(registry: &Registry, d: &'a AgentDefinition) -> Result<Self> {
        let mut problems = Problems::default();
        let model = problems.at("/model", registry.make_model(&d.model));
        let tools = d.tools.iter().enumerate().filter_map(|(i, part)| {
            let tools = find(&registry.tools, PartKind::Tool, part).and_then(|make| make(part.made_from()));
            problems.at(format_args!("/tools/{i}"), tools).zip(Some(part))
        });
        let tools = tools.collect();
        let server_tools = d.server_tools.iter().enumerate();
        let server_tools = server_tools
            .filter_map(|(i, tool)| problems.at(format_args!("/server_tools/{i}"), registry.server_tool_of(tool)))
            .collect();
        let toolsets = d.toolsets.iter().enumerate().filter_map(|(i, part)| {
            let place = format!("/toolsets/{i}");
            let make = problems.at(&place, find(&registry.toolsets, PartKind::Toolset, part));
            let so_far = AgentSoFar { model: model.as_ref()?, sub_agents: &[], registry };
            let made = make?(part.made_from(), so_far);
            problems.at(place, made).zip(Some(part))
        });
        let toolsets = toolsets.collect();
        let sub_agents = d.sub_agents.iter().filter_map(|(key, sub_agent)| {
            let agent = registry.builder(&sub_agent.agent).and_then(AgentBuilder::build);
            Some(SubAgent::new(key, &sub_agent.description, problems.under(key, agent)?))
        });
        let sub_agents: Vec<_> = sub_agents.collect();
        let middlewares = d.middleware.iter().enumerate().filter_map(|(i, part)| {
            let place = format!("/middleware/{i}");
            let make = problems.at(&place, find(&registry.middlewares, PartKind::Middleware, part));
            let so_far = AgentSoFar { model: model.as_ref()?, sub_agents: &sub_agents, registry };
            let made = make?(part.made_from(), so_far);
            problems.at(place, made).zip(Some(part))
        });
        let middlewares = middlewares.collect();
        let inputs = registry.fields("/inputs", &d.inputs, &mut problems);
        let state = registry.fields("/state", &d.state, &mut problems);
        let model = problems.end(model)?;
        Ok(Self { model, tools, server_tools, toolsets, sub_agents, middlewares, inputs, state })
    }

    /// Returns the agent's builder, which records the definition of each part.
    pub(super) fn builder(self, d: &AgentDefinition) -> AgentBuilder {
        let mut builder = AgentBuilder::new(d.name.clone(), self.model.clone());
        builder.provenance.model = Some((self.model, d.model.clone()));
        for (tools, part) in self.tools {
            builder.provenance.tools.extend(tools.iter().map(|tool| (tool.clone(), part.clone())));
            builder.tools.extend(tools);
        }
        builder.server_tools = self.server_tools;
        for (toolset, part) in self.toolsets {
            builder.provenance.toolsets.push((toolset.clone(), part.clone()));
            builder.toolsets.push(toolset);
        }
        // A sub-agent that a middleware offers belongs to that middleware only.
        let taken = self.middlewares.iter().flat_map(|(middleware, _)| middleware.sub_agents());
        let taken: BTreeSet<_> = taken.map(|agent| agent.key).collect();
        for (middleware, part) in self.middlewares {
            builder.provenance.middlewares.push((middleware.clone(), part.clone()));
            builder = builder.add_middleware(middleware, part.for_all);
        }
        builder.sub_agents.extend(self.sub_agents.into_iter().filter(|agent| !taken.contains(&agent.key)));
        builder.provenance.sub_agents.clone_from(&d.sub_agents);
        let rules = self.inputs.iter().chain(&self.state).filter_map(|(_, _, rule)| rule.clone());
        builder.provenance.handlers.extend(rules);
        builder = self.inputs.into_iter().fold(builder, |builder, (name, field, _)| builder.input(name, field));
        let keys = self.state.into_iter();
        builder.state(keys.fold(StateSchema::default(), |schema, (name, field, _)| schema.key(name, field)))
    }
}

/// Applies the settings of the definition that are not parts.
pub(super) fn settings(mut builder: AgentBuilder, d: &AgentDefinition) -> AgentBuilder {
    if let Some(system) = &d.system {
        builder = builder.system_message(system.message());
    }
    builder.prompts.system.clone_from(&d.system_prompt);
    builder.prompts.user.clone_from(&d.user_prompt);
    builder.prompts.required.clone_from(&d.required_variables);
    builder = builder.exit_on(&d.exit_on).max_steps(d.max_steps).final_answer(d.final_answer);
    builder = builder.tool_concurrency(d.tool_concurrency).max_tool_output(d.max_tool_output);
    builder.raise_tool_errors = d.raise_tool_errors;
    builder = builder.streaming(d.streaming).params(d.params.clone()).deadlines(d.deadlines.clone());
    builder.when_busy(d.when_busy).when_waiting(d.when_waiting)
}
