//! A file with all that it is made of: what it extends, and its sub-agents.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    file::FileKeys,
    nexau::{self, Difference, DifferenceKind},
    problem::Problem,
    references::References,
    text::{Entry, Format, Node, Source, Tree, read},
};

/// Most files within one another.
const MOST_DEPTH: usize = 16;

/// A value as it is written, and with what it refers to. Both have the same keys in the same order.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) written: Node,
    pub(super) live: Node,
}

/// Reads files.
pub(super) struct Reader<'a> {
    pub(super) references: &'a References,
    /// All files that were read, in the order of reading.
    pub(super) files: Vec<PathBuf>,
    pub(super) problems: Vec<Problem>,
    /// What is not as it was in NexAU.
    pub(super) differences: Vec<Difference>,
    /// Whether what cannot be had of NexAU is left out.
    lenient: bool,
    /// The files that are being read.
    path: Vec<PathBuf>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(references: &'a References, lenient: bool) -> Self {
        let (files, problems, differences, path) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { references, files, problems, differences, lenient, path }
    }

    /// The file with what it extends, its sub-agents in their places. Problems that leave nothing to go on with are the error.
    pub(super) fn file(&mut self, path: &Path, from: Option<&Node>) -> Result<Pair, Problem> {
        let node = self.text_of(path, from)?;
        let pair = self.whole(node);
        self.path.pop();
        pair
    }

    /// As [`file`](Self::file), of a text that is in no file.
    pub(super) fn text(&mut self, source: &Arc<Source>, format: Format) -> Result<Pair, Problem> {
        let node = read(source, format)?;
        let node = self.ours(node);
        self.whole(node)
    }

    /// The text of a file, which is under way until it is popped from the path.
    fn text_of(&mut self, path: &Path, from: Option<&Node>) -> Result<Node, Problem> {
        let shown = path.display().to_string();
        let at = || match from {
            Some(node) => node.place.clone(),
            None => super::text::Place::start(&Arc::new(Source { name: shown.clone(), text: String::new() })),
        };
        let wrong = |why: String| Problem::new(at(), format!("the file '{shown}' {why}"));
        let canonical = path.canonicalize().map_err(|e| wrong(format!("cannot be read: {e}")))?;
        if self.path.contains(&canonical) {
            return Err(wrong("is part of itself".to_owned()));
        }
        if self.path.len() >= MOST_DEPTH {
            return Err(wrong(format!("is below {MOST_DEPTH} others; that is the most")));
        }
        let text = std::fs::read_to_string(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        let source = Arc::new(Source { name: shown.clone(), text });
        let node = read(&source, Format::of(path))?;
        let node = self.ours(node);
        self.files.push(path.to_owned());
        self.path.push(canonical);
        Ok(node)
    }

    /// The file as one of this framework, if it is one of NexAU.
    fn ours(&mut self, node: Node) -> Node {
        if node.get("type").and_then(Node::text).is_none() {
            return node;
        }
        let (agent, differences) = nexau::translate(node.to_json());
        for difference in differences {
            if difference.kind == DifferenceKind::Impossible && !self.lenient {
                let at = node.nearest(&difference.path).place.clone();
                let why = format!("this cannot be had here; NexAU: {}", difference.nexau);
                self.problems.push(Problem::new(at, why).help(&difference.here));
            }
            self.differences.push(difference);
        }
        Node::of_json(&agent, &node.place)
    }

    /// An agent with all that it is made of.
    fn whole(&mut self, node: Node) -> Result<Pair, Problem> {
        let mut written = self.extended(node)?;
        let mut live = written.clone();
        let references = self.of_agent(&written);
        for entry in live.entries_mut().iter_mut().filter(|entry| entry.key != "sub_agents") {
            references.follow(&mut entry.node, &mut self.problems);
        }
        if let (Some(below), Some(live_below)) = (written.get_mut("sub_agents"), live.get_mut("sub_agents")) {
            self.sub_agents(below, live_below, &references);
        }
        Ok(Pair { written, live })
    }

    /// The references of an agent, with its own variables. What the loader was told wins.
    fn of_agent(&self, node: &Node) -> References {
        let own = node.get("variables").map(Node::entries).unwrap_or_default().iter();
        let own = own.filter_map(|entry| Some((entry.key.clone(), scalar(&entry.node)?)));
        let mut variables: BTreeMap<_, _> = own.collect();
        variables.extend(self.references.variables.clone());
        References { variables, ..self.references.clone() }
    }

    fn extended(&mut self, node: Node) -> Result<Node, Problem> {
        let Some(base) = node.get("extends") else { return Ok(node) };
        let Some(name) = base.text() else { return Ok(node) };
        let below = self.text_of(&base.place.dir().join(name), Some(base))?;
        let below = self.extended(below);
        self.path.pop();
        let mut below = below?;
        below.take("extends");
        Ok(joined(below, node))
    }

    fn sub_agents(&mut self, written: &mut Node, live: &mut Node, references: &References) {
        let (Tree::Map(written), Tree::Map(live)) = (&mut written.tree, &mut live.tree) else { return };
        for (written, live) in written.iter_mut().zip(live) {
            // What an agent says that is written here, it says with its own variables.
            let is_inline = |entry: &Entry| entry.key == "agent" && entry.node.text().is_none();
            match &mut live.node.tree {
                Tree::Map(said) => said
                    .iter_mut()
                    .filter(|entry| !is_inline(entry))
                    .for_each(|entry| references.follow(&mut entry.node, &mut self.problems)),
                _ => references.follow(&mut live.node, &mut self.problems),
            }
            match self.sub_agent(&written.node, &live.node) {
                Ok(pair) => (written.node, live.node) = (pair.written, pair.live),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// A sub-agent is a path, or `{description, agent}`, whose agent is a path or written there.
    fn sub_agent(&mut self, written: &Node, live: &Node) -> Result<Pair, Problem> {
        let agent = if live.text().is_some() { Some(live) } else { live.get("agent") };
        let pair = match agent.map(|agent| (agent, agent.text())) {
            None => return Ok(Pair { written: written.clone(), live: live.clone() }),
            Some((agent, Some(file))) => self.file(&agent.place.dir().join(file), Some(agent))?,
            Some((_, None)) => {
                let inline = written.get("agent").unwrap_or(written).clone();
                self.whole(inline)?
            }
        };
        let place = &live.place;
        let described = |agent: &Node, from: &Node| -> Node {
            let mut agent = agent.clone();
            let own = agent.take("description");
            for key in FileKeys::OF_SUB_AGENTS.into_iter().filter(|key| *key != "offer_sub_agents") {
                agent.take(key);
            }
            let mut entries: Vec<_> = from.entries().iter().filter(|entry| entry.key != "agent").cloned().collect();
            let has = entries.iter().any(|entry| entry.key == "description");
            if let Some(own) = own.filter(|_| !has) {
                entries.push(Entry { key: "description".to_owned(), place: own.place.clone(), node: own });
            }
            entries.push(Entry { key: "agent".to_owned(), place: agent.place.clone(), node: agent });
            Node::new(place.clone(), Tree::Map(entries))
        };
        Ok(Pair { written: described(&pair.written, written), live: described(&pair.live, live) })
    }
}

fn scalar(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::Text(text) => Some(text.clone()),
        Tree::Number(number) => Some(number.to_string()),
        Tree::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The upper over the lower: maps are joined key by key, everything else is replaced.
fn joined(lower: Node, upper: Node) -> Node {
    let place = upper.place.clone();
    match (lower.tree, upper.tree) {
        (Tree::Map(mut below), Tree::Map(above)) => {
            for entry in above {
                match below.iter().position(|known| known.key == entry.key) {
                    Some(at) => {
                        let known = below.remove(at);
                        let node = joined(known.node, entry.node);
                        below.insert(at, Entry { node, ..entry });
                    }
                    None => below.push(entry),
                }
            }
            Node::new(place, Tree::Map(below))
        }
        (_, above) => Node::new(place, above),
    }
}
