//! Description of the composed order, and the agent's fingerprint.

use std::fmt::Write;

use super::AgentBuilder;
use crate::stack::{Item, ToolEntry, middlewares};

/// Describes the stacks, outermost first, as they run.
pub(super) fn explain(builder: &AgentBuilder, entries: &[ToolEntry]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "agent {} on {}", builder.name, builder.model.info().name);
    stack(&mut out, "model call", builder, |item| matches!(item, Item::ModelLayer(..)), "journal -> model");
    stack(&mut out, "tool call", builder, |item| matches!(item, Item::ToolLayer(..)), "checks -> journal -> tool");
    let tools = names(builder, entries);
    let _ = writeln!(out, "tools: {}", if tools.is_empty() { "none".into() } else { tools.join(", ") });
    if !builder.sub_agents.is_empty() {
        let keys: Vec<_> = builder.sub_agents.iter().map(|a| a.key.as_str()).collect();
        let _ = writeln!(out, "sub-agents: {}", keys.join(", "));
    }
    let limits = &builder.limits;
    let _ = writeln!(
        out,
        "limits: {} steps{}, {} tools at once, {} bytes of tool output",
        limits.steps,
        if limits.final_answer { " and a final answer" } else { "" },
        limits.tool_concurrency,
        limits.tool_output,
    );
    out
}

/// Describes one stack. Hooks run once per call, outside of everything else; wraps and layers are
/// entered once per attempt.
fn stack(out: &mut String, what: &str, builder: &AgentBuilder, is_layer: impl Fn(&Item) -> bool, core: &str) {
    let _ = writeln!(out, "{what}:");
    let hooks = builder.items.iter().filter(|i| matches!(i, Item::Middleware(_)));
    let hooks: Vec<_> = hooks.map(|i| format!("{i:?}")).collect();
    if !hooks.is_empty() {
        let _ = writeln!(out, "  hooks, once per call: {}", hooks.join(" -> "));
    }
    let attempts = builder.items.iter().filter(|i| matches!(i, Item::Middleware(_)) || is_layer(i));
    let attempts: Vec<_> = attempts.map(|i| format!("{i:?}")).chain([core.to_owned()]).collect();
    let _ = writeln!(out, "  once per attempt: {}", attempts.join(" -> "));
}

/// Returns the facts on which a checkpoint of this agent depends, one per line, so that people can
/// compare two of them.
pub(super) fn fingerprint(builder: &AgentBuilder, entries: &[ToolEntry]) -> String {
    let mut tools = names(builder, entries);
    tools.sort_unstable();
    let middlewares = middlewares(&builder.items);
    let middlewares: Vec<_> = middlewares.iter().map(|m| m.name()).collect();
    format!(
        "agent: {}\nmodel: {}\ntools: {}\nmiddleware: {}",
        builder.name,
        builder.model.info().name,
        tools.join(", "),
        middlewares.join(", ")
    )
}

fn names<'a>(builder: &'a AgentBuilder, entries: &'a [ToolEntry]) -> Vec<&'a str> {
    let own = entries.iter().map(|entry| entry.spec.name.as_str());
    own.chain(builder.server_tools.iter().map(agent_core::tool::ServerTool::name)).collect()
}
