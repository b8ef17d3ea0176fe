//! [`Locator`]: source locations of errors that are found when an agent is built.

use std::fmt;

use agent_core::{Error, ErrorKind};

use super::{
    problem::{Problem, Problems},
    text::{Node, Place, Tree},
};

/// Lists whose entries are named parts.
const PARTS: [&str; 4] = ["tools", "toolsets", "middleware", "server_tools"];

/// Keys by words of messages about them.
const KEYS: [(&str, &[&str]); 6] = [
    ("exit condition", &["exit_on"]),
    ("system prompt", &["system_prompt", "system"]),
    ("template", &["system_prompt", "user_prompt", "system"]),
    ("final answer", &["final_answer"]),
    ("sub-agent", &["sub_agents"]),
    ("tool", &["tools", "toolsets"]),
];

/// Finds the place in a file that an error of building its agent is about.
///
/// ```
/// use agent::config::{Format, Loader};
///
/// let text = "name: clerk\nmodel: offline:any\nexit_on: [text, finsh]\n";
/// let loaded = Loader::new().read(text, Format::Yaml)?;
/// let error = loaded.builder().build().unwrap_err();
/// let located = loaded.locator().located(error);
/// assert!(located.message().starts_with("agent:3:17: exit condition 'finsh'"), "{located}");
/// # Ok::<(), agent::Error>(())
/// ```
#[derive(Clone)]
pub struct Locator {
    agent: Node,
}

/// Shows no content: the file's values may be secrets.
impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locator").finish_non_exhaustive()
    }
}

impl Locator {
    pub(super) fn new(agent: Node) -> Self {
        Self { agent }
    }

    /// Returns the error with the line of the file that it is about. Errors other than those of the
    /// [configuration](ErrorKind::Config), and errors that have a location, are returned unchanged.
    pub fn located(&self, error: Error) -> Error {
        let has_place = std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<Problems>);
        if error.kind() != ErrorKind::Config || has_place {
            return error;
        }
        let place = self.place(error.message());
        Problems::from(Problem::new(place, error.message())).into()
    }

    /// The place of the part that a message names, or of the key that it is about, or of the agent.
    fn place(&self, message: &str) -> Place {
        let quoted: Vec<&str> = message.split('\'').skip(1).step_by(2).collect();
        if message.starts_with("two tools are named")
            && let Some(place) = self.second_of_a_kind("tools").or_else(|| self.second_of_a_kind("toolsets"))
        {
            return place;
        }
        let of_parts = || quoted.iter().find_map(|word| PARTS.iter().find_map(|list| self.part(list, word)));
        let of_key = || {
            let (_, keys) = KEYS.iter().find(|(words, _)| message.contains(words))?;
            let node = keys.iter().find_map(|key| self.agent.get(key))?;
            let value = quoted.iter().find_map(|word| node.list().iter().find(|item| item.text() == Some(word)));
            Some(value.unwrap_or(node).place.clone())
        };
        let of_name = || self.agent.get("name").map(|name| name.place.clone());
        of_parts().or_else(of_key).or_else(of_name).unwrap_or_else(|| self.agent.place.clone())
    }

    /// The place of the part of this name, or of the part whose key `name` says so.
    fn part(&self, list: &str, word: &str) -> Option<Place> {
        let is_meant = |node: &&Node| match &node.tree {
            Tree::Text(name) => name == word,
            _ => node
                .entries()
                .iter()
                .any(|entry| entry.key == word || entry.node.get("name").and_then(Node::text) == Some(word)),
        };
        Some(self.agent.get(list)?.list().iter().rfind(is_meant)?.place.clone())
    }

    /// The place of the first entry whose part is listed a second time.
    fn second_of_a_kind(&self, list: &str) -> Option<Place> {
        let nodes = self.agent.get(list)?.list();
        let name = |node: &Node| match &node.tree {
            Tree::Text(name) => Some(name.clone()),
            _ => {
                let entry = node.entries().first()?;
                let own = entry.node.get("name").and_then(Node::text);
                Some(own.map_or_else(|| entry.key.clone(), str::to_owned))
            }
        };
        let twice = |at: &usize| nodes[..*at].iter().any(|before| name(before) == name(&nodes[*at]));
        (1..nodes.len()).find(twice).map(|at| nodes[at].place.clone())
    }
}
