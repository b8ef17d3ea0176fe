//! Build-time checks: refuse configurations that cannot work, with a hint on what to change.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Error, Result, StateSchema, middleware::Middlewares};
use agent_tools::check_value;

use super::AgentBuilder;
use crate::stack::ToolEntry;

/// Compiles the check of every field that was declared by JSON Schema, and checks the declarations.
pub(super) fn schema(schema: &mut StateSchema) -> Result<()> {
    for (name, field) in schema.fields_mut() {
        if let Some(json) = field.unchecked_schema() {
            let check = check_value(json).map_err(|e| Error::config(format!("state key '{name}': {}", e.message())))?;
            *field = field.clone().check(check);
        }
    }
    schema.check()
}

pub(super) fn agent(builder: &AgentBuilder, middlewares: &Middlewares, entries: &[ToolEntry]) -> Result<()> {
    if builder.name.trim().is_empty() {
        return refuse("an agent needs a name".into());
    }
    if builder.limits.tool_concurrency == 0 {
        return refuse("tool_concurrency must be at least 1".into());
    }
    if builder.system.is_some() && builder.prompts.system.is_some() {
        return refuse("the agent has a system prompt twice: set it with system(..) or with system_prompt(..)".into());
    }
    tools(builder, entries)?;
    exits(builder, entries)?;
    sub_agents(builder)?;
    order(middlewares)
}

fn refuse(message: String) -> Result<()> {
    Err(Error::config(message))
}

fn tools(builder: &AgentBuilder, entries: &[ToolEntry]) -> Result<()> {
    let info = builder.model.info();
    let has_tools = !entries.is_empty() || !builder.toolsets.is_empty() || !builder.server_tools.is_empty();
    if has_tools && !info.tools {
        let model = info.name;
        return refuse(format!(
            "model '{model}' takes no tools, but the agent has some: remove them or use another model"
        ));
    }
    let mut names = BTreeSet::new();
    for entry in entries {
        let name = entry.spec.name.as_str();
        if !names.insert(name) {
            return refuse(format!("two tools are named '{name}': rename one, or prefix its tool set"));
        }
        entry.check(&builder.schema)?;
    }
    match builder.server_tools.iter().find(|tool| !names.insert(tool.name())) {
        Some(twice) => refuse(format!("two tools are named '{}': rename your own", twice.name())),
        None => Ok(()),
    }
}

fn exits(builder: &AgentBuilder, entries: &[ToolEntry]) -> Result<()> {
    if !builder.toolsets.is_empty() {
        return Ok(()); // a tool set may add a tool of that name later
    }
    let known = |exit: &&String| *exit == "text" || entries.iter().any(|e| e.spec.name == **exit);
    if let Some(unknown) = builder.exit_on.iter().find(|exit| !known(exit)) {
        let valid: Vec<_> = std::iter::once("text").chain(entries.iter().map(|e| e.spec.name.as_str())).collect();
        return refuse(format!("exit condition '{unknown}' can never be met; valid: {}", valid.join(", ")));
    }
    Ok(())
}

fn sub_agents(builder: &AgentBuilder) -> Result<()> {
    let mut keys = BTreeSet::new();
    match builder.sub_agents.iter().find(|a| !keys.insert(&a.key)) {
        Some(twice) => refuse(format!("two sub-agents have the key '{}': rename one", twice.key)),
        None => Ok(()),
    }
}

/// Checks the configuration of each middleware, and the order constraints that it declares.
fn order(middlewares: &Middlewares) -> Result<()> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, m) in middlewares.iter().enumerate() {
        places.entry(m.name()).or_default().push(place);
    }
    let at = |name: &str| places.get(name).map(Vec::as_slice).unwrap_or_default();
    for (place, m) in middlewares.iter().enumerate() {
        m.validate()?;
        let (name, placement) = (m.name(), m.placement());
        if placement.unique && at(name).len() > 1 {
            return refuse(format!("middleware '{name}' is registered twice; it may be there once: remove one"));
        }
        if let Some(missing) = placement.requires.iter().find(|other| at(other).is_empty()) {
            return refuse(format!("middleware '{name}' requires '{missing}', which is not there: add it"));
        }
        if let Some(other) = placement.conflicts.iter().find(|other| !at(other).is_empty()) {
            return refuse(format!("middleware '{name}' conflicts with '{other}': remove one of them"));
        }
        if let Some(other) = placement.outside.iter().find(|other| at(other).iter().any(|p| *p < place)) {
            return refuse(format!("middleware '{name}' must be outside '{other}': register it before '{other}'"));
        }
        if let Some(other) = placement.inside.iter().find(|other| at(other).iter().any(|p| *p > place)) {
            return refuse(format!("middleware '{name}' must be inside '{other}': register it after '{other}'"));
        }
    }
    Ok(())
}
