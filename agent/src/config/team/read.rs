//! A team's file with the agents that it names.

use std::path::Path;

use crate::config::{
    include::{Pair, Reader},
    problem::Problem,
    references::References,
    text::{Entry, Node, Tree},
};

use super::{SHARED, TEAM};

/// Keys of one agent, and of lists of agents.
const ONE: [&str; 9] = ["leader", "chooser", "map", "reduce", "judge", "writer", "evaluator", "selector", "manager"];
const SEVERAL: [&str; 5] = ["agents", "debaters", "workers", "sequence", "parallel"];
const MEMBERS: &str = "members";

/// A file that was read: an agent's, or a team's.
pub(in crate::config) enum Read {
    Agent(Result<Pair, Problem>),
    Team(Result<TeamPair, Problem>),
}

/// A team's file, with the numbers of agents in their places, and the agents.
pub(in crate::config) struct TeamPair {
    pub(super) file: Node,
    pub(super) agents: Vec<TeamAgent>,
}

/// An agent of a team.
pub(super) struct TeamAgent {
    /// Place of the agent in the team, such as `leader`, `builder` or `debaters/1`.
    pub(super) slot: String,
    pub(super) pair: Pair,
}

impl TeamAgent {
    /// Removes the keys that only the team has, and reports them.
    pub(super) fn refuse_own(&mut self, problems: &mut Vec<Problem>) {
        for key in ["store", "telemetry"] {
            if let Some(entry) = self.pair.live.entries().iter().find(|entry| entry.key == key) {
                let why = format!("an agent of a team has no '{key}' of its own: that of the team is for all");
                problems.push(Problem::new(entry.place.clone(), why).help(format!("write '{key}' in the team's file")));
            }
            self.pair.written.take(key);
            self.pair.live.take(key);
        }
    }

    /// Gives the agent the keys of the team's file that are for all agents. Its own models, providers and
    /// transport take precedence.
    pub(super) fn share(&mut self, file: &Node) {
        for key in SHARED {
            let Some(shared) = file.get(key) else { continue };
            for agent in [&mut self.pair.written, &mut self.pair.live] {
                match agent.get_mut(key) {
                    None => agent.put(key, shared.clone()),
                    Some(own) if key == "models" => add_missing(own, shared),
                    Some(_) => {}
                }
            }
        }
    }
}

fn add_missing(own: &mut Node, shared: &Node) {
    for Entry { key, node, .. } in shared.entries() {
        if own.get(key).is_none() {
            own.put(key, node.clone());
        }
    }
}

impl Reader<'_> {
    /// Reads a file that describes an agent or a team.
    pub(in crate::config) fn either(&mut self, path: &Path) -> Read {
        let node = match self.text_of(path, None) {
            Ok(node) => node,
            Err(problem) => return Read::Agent(Err(problem)),
        };
        let read = self.either_of(node);
        self.leave();
        read
    }

    /// As [`either`](Self::either), of a text that was parsed.
    pub(in crate::config) fn either_of(&mut self, node: Node) -> Read {
        let written = match self.extended(node) {
            Ok(written) => written,
            Err(problem) => return Read::Agent(Err(problem)),
        };
        match written.get(TEAM).is_some() {
            true => Read::Team(Ok(self.team(written))),
            false => Read::Agent(self.of_extended(written)),
        }
    }

    /// Reads the agents of a team, and resolves its references.
    fn team(&mut self, mut file: Node) -> TeamPair {
        file.take("extends");
        let references = self.of_variables(file.get_mut("variables"));
        let mut agents = Vec::new();
        if let Some(team) = file.get_mut(TEAM) {
            self.slots("", team, &references, &mut agents);
        }
        for entry in file.entries_mut().iter_mut().filter(|entry| entry.key != "variables") {
            self.follow(&references, &mut entry.node);
        }
        TeamPair { file, agents }
    }

    /// Reads the agents below a node, and puts their numbers in their places.
    fn slots(&mut self, above: &str, node: &mut Node, references: &References, agents: &mut Vec<TeamAgent>) {
        for Entry { key, node, .. } in node.entries_mut() {
            let slot = format!("{above}{key}");
            if ONE.contains(&key.as_str()) {
                self.slot(slot, node, references, agents);
            } else if SEVERAL.contains(&key.as_str()) {
                for (at, node) in node.list_mut().iter_mut().enumerate() {
                    self.slot(format!("{slot}/{}", at + 1), node, references, agents);
                }
                self.slots(&format!("{slot}/"), node, references, agents);
            } else if key == MEMBERS {
                for Entry { key: role, node, .. } in node.entries_mut() {
                    match node.get_mut("agent") {
                        Some(agent) => self.slot(role.clone(), agent, references, agents),
                        None => self.slot(role.clone(), node, references, agents),
                    }
                }
            } else {
                self.slots(&format!("{slot}/"), node, references, agents);
            }
        }
    }

    /// Reads an agent that is named by its file or written there.
    fn slot(&mut self, slot: String, node: &mut Node, references: &References, agents: &mut Vec<TeamAgent>) {
        let pair = match &node.tree {
            Tree::Text(_) => {
                self.follow(references, node);
                if node.is_lost {
                    return;
                }
                let path = node.place.dir().join(node.text().unwrap_or_default());
                self.file(&path, Some(node))
            }
            Tree::Map(_) => self.whole(node.clone()),
            _ => return,
        };
        match pair {
            Ok(pair) => {
                node.tree = Tree::Text(agents.len().to_string());
                agents.push(TeamAgent { slot, pair });
            }
            Err(problem) => {
                node.is_lost = true;
                self.problems.push(problem);
            }
        }
    }
}

/// The paths of the agents' files below a node, as they are written.
pub(super) fn paths(node: &Node) -> Vec<&str> {
    let mut all = Vec::new();
    for entry in node.entries() {
        let texts = entry.node.list().iter().chain([&entry.node]).filter_map(Node::text);
        all.extend(texts.filter(|text| [".yaml", ".yml", ".toml", ".json"].iter().any(|end| text.ends_with(end))));
        all.extend(paths(&entry.node));
    }
    all
}
