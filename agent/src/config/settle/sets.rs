//! Moves tool sets from the tools to the tool sets.

use super::{list, part};
use crate::config::{
    registry::Registry,
    text::{Node, Tree},
};

pub(super) fn settle(registry: &Registry, agent: &mut Node) {
    let Some(Tree::List(tools)) = agent.get_mut("tools").map(|node| &mut node.tree) else { return };
    let sets: Vec<_> = tools.extract_if(.., |node| registry.toolsets.contains_key(part(node).0)).collect();
    if let Some(place) = sets.first().map(|node| node.place.clone()) {
        list(agent, "toolsets", &place).extend(sets);
    }
}

/// Servers of tools are required.
pub(super) fn require_servers(agent: &mut Node) {
    let tools = agent.get_mut("tools").map(Node::list_mut).unwrap_or_default();
    for server in tools.iter_mut().filter_map(|tool| tool.get_mut("mcp")) {
        server.take("required");
        let required = Node::new(server.place.clone(), Tree::Bool(true));
        server.put("required", required);
    }
}
