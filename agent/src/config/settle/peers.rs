//! A sub-agent that is an agent elsewhere is one that relays to the tool that speaks with it, as `Agent::of_tool` makes it.

use super::{entry, map, part, text};
use crate::config::{
    parts::model::RELAY,
    text::{Node, Tree},
};

pub(in crate::config) const PEER: &str = "peer";

pub(super) fn settle(agent: &mut Node) {
    let below = agent.get_mut("sub_agents").map(Node::entries_mut).unwrap_or_default();
    for sub_agent in below {
        if let Some(peer) = sub_agent.node.take(PEER) {
            sub_agent.node.put("agent", relay(&sub_agent.key, &peer));
        }
    }
}

fn relay(key: &str, peer: &Node) -> Node {
    let place = peer.place.clone();
    let (kind, config) = part(peer);
    let mut config = match config.map(|config| &config.tree) {
        Some(Tree::Map(entries)) => map(&place, entries.clone()),
        _ => map(&place, Vec::new()),
    };
    if config.get("name").is_none() {
        config.put("name", text(&place, key));
    }
    let tool = config.get("name").and_then(Node::text).unwrap_or(key).to_owned();
    let list = |node: Node| Node::new(place.clone(), Tree::List(vec![node]));
    let tools = list(map(&place, vec![entry(kind, config)]));
    map(
        &place,
        vec![
            entry("name", text(&place, key)),
            entry("model", text(&place, &format!("{RELAY}{tool}"))),
            entry("tools", tools),
            entry("exit_on", list(text(&place, &tool))),
            entry("raise_tool_errors", Node::new(place.clone(), Tree::Bool(true))),
        ],
    )
}
