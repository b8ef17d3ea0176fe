//! A file with all that it is made of: what it extends, and its sub-agents.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    file::FileKeys,
    nexau::{self, Difference, DifferenceKind},
    problem::Problem,
    references::References,
    registry::Registry,
    sources::Sources,
    text::{Entry, Format, Node, Source, Tree, read},
};

/// Most files within one another.
const MOST_DEPTH: usize = 16;

/// A value as written, and with its references resolved. Both have the same keys in the same order.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) written: Node,
    pub(super) live: Node,
}

impl Pair {
    /// Takes out what sub-agents say beside their definitions, which acted already.
    pub(super) fn without_keys_of_sub_agents(&mut self) {
        fn strip(agent: &mut Node) {
            let below = agent.get_mut("sub_agents").map(Node::entries_mut).unwrap_or_default();
            for agent in below.iter_mut().filter_map(|entry| entry.node.get_mut("agent")) {
                FileKeys::OF_SUB_AGENTS.into_iter().for_each(|key| drop(agent.take(key)));
                strip(agent);
            }
        }
        strip(&mut self.written);
        strip(&mut self.live);
    }
}

/// Reads files.
pub(super) struct Reader<'a> {
    references: &'a References,
    /// Parts that a file of NexAU may name.
    registry: &'a Registry,
    pub(super) sources: Sources,
    pub(super) problems: Vec<Problem>,
    /// Differences from NexAU.
    pub(super) differences: Vec<Difference>,
    /// Leaves out parts of NexAU that cannot be translated.
    lenient: bool,
    /// The files that are being read.
    path: Vec<PathBuf>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(references: &'a References, registry: &'a Registry, lenient: bool) -> Self {
        let (sources, problems, differences, path) = (Sources::default(), Vec::new(), Vec::new(), Vec::new());
        Self { references, registry, sources, problems, differences, lenient, path }
    }

    /// Reads a file, with the files that it extends and its sub-agents in their places. The error is a problem after which nothing can be read.
    pub(super) fn file(&mut self, path: &Path, from: Option<&Node>) -> Result<Pair, Problem> {
        let node = self.text_of(path, from)?;
        let pair = self.whole(node);
        self.leave();
        pair
    }

    /// As [`file`](Self::file), of a text that is in no file.
    pub(super) fn text(&mut self, source: &Arc<Source>, format: Format) -> Result<Pair, Problem> {
        let node = self.parsed(source, format)?;
        self.whole(node)
    }

    /// Parses a text, and translates it if it is one of NexAU.
    pub(super) fn parsed(&mut self, source: &Arc<Source>, format: Format) -> Result<Node, Problem> {
        let node = read(source, format)?;
        self.ours(node)
    }

    /// Reads the value of one key, with the files that the file extends. Other problems are ignored.
    pub(super) fn key(&mut self, path: &Path, key: &str) -> Result<Option<Node>, Problem> {
        let node = self.text_of(path, None)?;
        let node = self.extended(node);
        self.leave();
        let mut node = node?;
        let Some(mut said) = node.take(key) else { return Ok(None) };
        let references = self.of_variables(node.get_mut("variables"));
        if !said.text().is_some_and(|text| text.contains("${variables.")) {
            self.problems.clear();
        }
        self.follow(&references, &mut said);
        Ok(Some(said))
    }

    /// Reads the text of a file, which counts as being read until it is [left](Self::leave).
    pub(super) fn text_of(&mut self, path: &Path, from: Option<&Node>) -> Result<Node, Problem> {
        let shown = path.display().to_string();
        let at = || match from {
            Some(node) => node.place.clone(),
            None => super::text::Place::start(&Arc::new(Source { name: shown.clone(), text: String::new() })),
        };
        let wrong = |why: String| Problem::new(at(), format!("the file '{shown}' {why}"));
        // One that is not there is looked for by its name.
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.path.contains(&canonical) {
            return Err(wrong("is part of itself".to_owned()));
        }
        if self.path.len() >= MOST_DEPTH {
            return Err(wrong(format!("is below {MOST_DEPTH} others; that is the most")));
        }
        let text = self.sources.text(path).map_err(wrong)?;
        let source = Arc::new(Source { name: shown.clone(), text });
        let node = read(&source, Format::of(path))?;
        let node = self.ours(node)?;
        self.path.push(canonical);
        Ok(node)
    }

    /// The newest file is read.
    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    /// Translates a file of NexAU: one that has the key `type` or `llm_config`.
    fn ours(&mut self, node: Node) -> Result<Node, Problem> {
        match node.get("type").map(|kind| (kind, kind.text())) {
            None if node.get("llm_config").is_none() => return Ok(node),
            None | Some((_, Some("agent") | None)) => {}
            Some((kind, Some(word))) => return Err(not_an_agent(kind, word)),
        }
        let known = nexau::Known::of(self.registry, self.references);
        let (agent, differences) = nexau::translate_for(node.to_json(), Some(known));
        for mut difference in differences {
            let at = node.nearest(&difference.path).place.clone();
            if difference.kind == DifferenceKind::Impossible && !self.lenient {
                let why = match difference.nexau.strip_prefix(nexau::UNKNOWN_KEY) {
                    Some(key) => format!("unknown key{key} in a file of NexAU"),
                    None => format!("this cannot be translated; NexAU {}", difference.nexau),
                };
                self.problems.push(Problem::new(at.clone(), why).help(&difference.here));
            }
            difference.place = Some(at.to_string());
            self.differences.push(difference);
        }
        Ok(nexau::placed(&agent, &node))
    }

    /// An agent with all that it is made of.
    pub(super) fn whole(&mut self, node: Node) -> Result<Pair, Problem> {
        let written = self.extended(node)?;
        self.of_extended(written)
    }

    /// As [`whole`](Self::whole), of an agent that was joined with the files that it extends.
    pub(super) fn of_extended(&mut self, mut written: Node) -> Result<Pair, Problem> {
        self.include(&mut written);
        let mut live = written.clone();
        let references = self.of_variables(live.get_mut("variables"));
        let is_followed = |entry: &&mut Entry| !["sub_agents", "variables"].contains(&entry.key.as_str());
        for entry in live.entries_mut().iter_mut().filter(is_followed) {
            self.follow(&references, &mut entry.node);
        }
        if let (Some(below), Some(live_below)) = (written.get_mut("sub_agents"), live.get_mut("sub_agents")) {
            self.sub_agents(below, live_below, &references);
        }
        Ok(Pair { written, live })
    }

    pub(super) fn of_variables(&mut self, variables: Option<&mut Node>) -> References {
        match variables {
            Some(variables) => self.references.with_variables(variables, &mut self.sources, &mut self.problems),
            None => self.references.clone(),
        }
    }

    pub(super) fn follow(&mut self, references: &References, node: &mut Node) {
        references.follow(node, &mut self.sources, &mut self.problems);
    }

    pub(super) fn extended(&mut self, node: Node) -> Result<Node, Problem> {
        let Some(base) = node.get("extends") else { return Ok(node) };
        let Some(name) = base.text() else { return Ok(node) };
        let below = self.text_of(&base.place.dir().join(name), Some(base))?;
        let below = self.extended(below);
        self.leave();
        let mut below = below?;
        below.take("extends");
        Ok(joined(below, node))
    }

    fn sub_agents(&mut self, written: &mut Node, live: &mut Node, references: &References) {
        let (Tree::Map(written), Tree::Map(live)) = (&mut written.tree, &mut live.tree) else { return };
        for (written, live) in written.iter_mut().zip(live) {
            // An inline agent has its own variables.
            let is_inline = |entry: &Entry| entry.key == "agent" && entry.node.text().is_none();
            match &mut live.node.tree {
                Tree::Map(said) => said
                    .iter_mut()
                    .filter(|entry| !is_inline(entry))
                    .for_each(|entry| self.follow(references, &mut entry.node)),
                _ => self.follow(references, &mut live.node),
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
        let pair = match agent.filter(|agent| !agent.is_lost).map(|agent| (agent, agent.text())) {
            None => return Ok(Pair { written: written.clone(), live: live.clone() }),
            Some((agent, Some(file))) => self.file(&agent.place.dir().join(file), Some(agent))?,
            Some((_, None)) => {
                let inline = written.get("agent").unwrap_or(written).clone();
                self.whole(inline)?
            }
        };
        let pair = self.below_another(pair);
        let place = &live.place;
        if let Some(fallback) = live.get(nexau::FALLBACK_DESCRIPTION)
            && pair.live.get("description").is_none()
        {
            self.differences.push(Difference {
                path: "/sub_agents".to_owned(),
                place: Some(place.to_string()),
                kind: DifferenceKind::Otherwise,
                nexau: "describes a sub-agent without a description by its name".to_owned(),
                here: format!("its description is \"{}\"", fallback.text().unwrap_or_default()),
            });
        }
        let described = |agent: &Node, from: &Node| -> Node {
            let mut agent = agent.clone();
            let own = agent.take("description");
            agent.take("extends");
            let is_said = |entry: &&Entry| entry.key != "agent" && entry.key != nexau::FALLBACK_DESCRIPTION;
            let mut entries: Vec<_> = from.entries().iter().filter(is_said).cloned().collect();
            let has = entries.iter().any(|entry| entry.key == "description");
            let own = own.or_else(|| from.get(nexau::FALLBACK_DESCRIPTION).cloned());
            if let Some(own) = own.filter(|_| !has) {
                entries.push(Entry { key: "description".to_owned(), place: own.place.clone(), node: own });
            }
            entries.push(Entry { key: "agent".to_owned(), place: agent.place.clone(), node: agent });
            Node::new(place.clone(), Tree::Map(entries))
        };
        Ok(Pair { written: described(&pair.written, written), live: described(&pair.live, live) })
    }

    /// Removes the keys that only a top-level agent has, and reports them.
    fn below_another(&mut self, mut pair: Pair) -> Pair {
        for key in FileKeys::ALL.into_iter().filter(|key| !FileKeys::OF_SUB_AGENTS.contains(key)) {
            if let Some(entry) = pair.live.entries().iter().find(|entry| entry.key == key) {
                let why = format!("a sub-agent has no '{key}' of its own: that of the agent above is for all");
                let help =
                    "take it out here; what this file says as an agent by itself can stand in one that extends it";
                self.problems.push(Problem::new(entry.place.clone(), why).help(help));
            }
            pair.written.take(key);
            pair.live.take(key);
        }
        pair
    }
}

/// The error of a file of NexAU that describes something other than an agent.
fn not_an_agent(kind: &Node, word: &str) -> Problem {
    let problem = |why: String| Problem::new(kind.place.clone(), why);
    match word {
        "tool" => problem("this is a tool of NexAU, not an agent".to_owned())
            .help("name the file of an agent; a tool is listed below its key 'tools'"),
        "plugin" => problem("this is a plugin of NexAU, not an agent".to_owned())
            .help("list its tools, skills, servers and sub-agents in the file of an agent"),
        _ => {
            let near = super::near::nearest(word, &["agent"]).map(|near| format!("did you mean '{near}'?"));
            problem(format!("unknown type '{word}'"))
                .help(near.unwrap_or_else(|| "the type of an agent is 'agent'".into()))
        }
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
