//! Parts that follow from the keys of a file.
//!
//! Both forms of the file, as written and with resolved references, are changed alike, so that a definition written down again
//! says all of it.

mod offer;
mod peers;
mod permissions;
#[cfg(all(feature = "plugins", target_os = "linux"))]
mod plugins;
mod sets;
mod telemetry;

pub(super) use self::{peers::PEER, permissions::of as permissions_of};
use super::{
    problem::Problem,
    registry::Registry,
    text::{Entry, Node, Place, Tree},
};

/// Settings for settling agents.
pub(super) struct Settled<'a> {
    pub(super) registry: &'a Registry,
    /// Requires each server of tools, whatever the file says.
    pub(super) requires_servers: bool,
}

impl Settled<'_> {
    /// Settles an agent, and those below it.
    pub(super) fn agent(&self, written: &mut Node, live: &mut Node, problems: &mut Vec<Problem>) {
        #[cfg(all(feature = "plugins", target_os = "linux"))]
        plugins::settle(written, live, problems);
        peers::settle(written);
        peers::settle(live);
        if let (Some(written), Some(live)) = (written.get_mut("sub_agents"), live.get_mut("sub_agents")) {
            for (written, live) in written.entries_mut().iter_mut().zip(live.entries_mut()) {
                if let (Some(written), Some(live)) = (written.node.get_mut("agent"), live.node.get_mut("agent")) {
                    self.agent(written, live, problems);
                }
            }
        }
        problems.extend(permissions::wrong(self.registry, live));
        permissions::settle(self.registry, written, live);
        offer::settle(self.registry, written, live);
        telemetry::settle(written, live);
        if self.requires_servers {
            sets::require_servers(live);
        }
        sets::settle(self.registry, written);
        sets::settle(self.registry, live);
    }
}

/// The name and the configuration of an entry of a list of parts.
fn part(node: &Node) -> (&str, Option<&Node>) {
    match &node.tree {
        Tree::Text(name) => (name, None),
        _ => match node.entries().iter().find(|entry| entry.key != "for_all") {
            Some(entry) => (&entry.key, Some(&entry.node)),
            None => ("", None),
        },
    }
}

/// Position of the part of this name in the list of an agent.
fn position(agent: &Node, list: &str, name: &str) -> Option<usize> {
    agent.get(list)?.list().iter().position(|node| part(node).0 == name)
}

/// Returns the list of an agent, and creates it if it is missing.
fn list<'a>(agent: &'a mut Node, key: &str, place: &Place) -> &'a mut Vec<Node> {
    if !matches!(agent.get(key).map(|node| &node.tree), Some(Tree::List(_))) {
        agent.take(key);
        agent.put(key, Node::new(place.clone(), Tree::List(Vec::new())));
    }
    match agent.get_mut(key).map(|node| &mut node.tree) {
        Some(Tree::List(nodes)) => nodes,
        _ => unreachable!("it was made above"),
    }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry { key: key.to_owned(), place: node.place.clone(), node }
}

fn map(place: &Place, entries: Vec<Entry>) -> Node {
    Node::new(place.clone(), Tree::Map(entries))
}

fn text(place: &Place, text: &str) -> Node {
    Node::new(place.clone(), Tree::Text(text.to_owned()))
}
