//! Parts that several agents share: an entry `include: PATH` in a list of parts.

use super::{
    include::Reader,
    problem::Problem,
    text::{Entry, Node, Tree},
};

/// The lists of parts.
pub(super) const LISTS: [&str; 3] = ["tools", "toolsets", "middleware"];

pub(super) const INCLUDE: &str = "include";

impl Reader<'_> {
    /// Puts in what other files list, in the places of the entries that name them.
    pub(super) fn include(&mut self, agent: &mut Node) {
        for key in LISTS {
            if let Some(Tree::List(nodes)) = agent.get_mut(key).map(|node| &mut node.tree) {
                *nodes = self.parts(key, std::mem::take(nodes));
            }
        }
    }

    fn parts(&mut self, key: &str, nodes: Vec<Node>) -> Vec<Node> {
        let mut all = Vec::new();
        for node in nodes {
            match node.entries() {
                [Entry { key: name, node: path, .. }] if name == INCLUDE && path.text().is_some() => {
                    match self.listed(key, path) {
                        Ok(parts) => all.extend(parts),
                        Err(problem) => self.problems.push(problem),
                    }
                }
                _ => all.push(node),
            }
        }
        all
    }

    /// The parts that a file lists: as a whole, or below the same key, as the file of an agent does.
    fn listed(&mut self, key: &str, path: &Node) -> Result<Vec<Node>, Problem> {
        let name = path.text().unwrap_or_default();
        let mut file = self.text_of(&path.place.dir().join(name), Some(path))?;
        let list = if file.entries().is_empty() { Some(file) } else { file.take(key) };
        let parts = match list.map(|list| list.tree) {
            Some(Tree::List(nodes)) => Ok(self.parts(key, nodes)),
            _ => {
                Err(Problem::new(path.place.clone(), format!("the file '{name}' is no list, and has none at '{key}'")))
            }
        };
        self.leave();
        parts
    }
}
