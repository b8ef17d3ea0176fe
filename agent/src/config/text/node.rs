//! [`Node`]: a value that knows where it stands.

use serde_json::{Map, Number, Value};

use super::Place;

#[derive(Clone, Debug)]
pub(in crate::config) struct Node {
    pub(in crate::config) place: Place,
    pub(in crate::config) tree: Tree,
    /// True for what came in the place of a reference, and so may be of another type than the text that it was written as.
    pub(in crate::config) referred: bool,
    /// True for an unresolved reference, which was reported: its value is unknown.
    pub(in crate::config) is_lost: bool,
}

#[derive(Clone, Debug)]
pub(in crate::config) enum Tree {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// No key is there twice.
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(in crate::config) struct Entry {
    pub(in crate::config) key: String,
    pub(in crate::config) place: Place,
    pub(in crate::config) node: Node,
}

impl Node {
    pub(in crate::config) fn new(place: Place, tree: Tree) -> Self {
        Self { place, tree, referred: false, is_lost: false }
    }

    /// Makes it what its reference leads to.
    pub(in crate::config) fn refers_to(&mut self, text: String) {
        self.tree = Tree::Text(text);
        self.referred = true;
    }

    /// Describes the type of the value.
    pub(in crate::config) fn kind(&self) -> &'static str {
        match &self.tree {
            Tree::Null => "nothing",
            Tree::Bool(_) => "true or false",
            Tree::Number(_) => "a number",
            Tree::Text(_) => "a text",
            Tree::List(_) => "a list",
            Tree::Map(_) => "a map",
        }
    }

    pub(in crate::config) fn entries(&self) -> &[Entry] {
        match &self.tree {
            Tree::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(in crate::config) fn entries_mut(&mut self) -> &mut [Entry] {
        match &mut self.tree {
            Tree::Map(entries) => entries,
            _ => &mut [],
        }
    }

    pub(in crate::config) fn list(&self) -> &[Self] {
        match &self.tree {
            Tree::List(nodes) => nodes,
            _ => &[],
        }
    }

    pub(in crate::config) fn list_mut(&mut self) -> &mut [Self] {
        match &mut self.tree {
            Tree::List(nodes) => nodes,
            _ => &mut [],
        }
    }

    pub(in crate::config) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(in crate::config) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.tree {
            Tree::Map(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            _ => None,
        }
    }

    /// Adds an entry to a map.
    pub(in crate::config) fn put(&mut self, key: &str, node: Self) {
        if let Tree::Map(entries) = &mut self.tree {
            entries.push(Entry { key: key.to_owned(), place: node.place.clone(), node });
        }
    }

    /// Takes an entry out.
    pub(in crate::config) fn take(&mut self, key: &str) -> Option<Self> {
        let Tree::Map(entries) = &mut self.tree else { return None };
        let place = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(place).node)
    }

    pub(in crate::config) fn text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A word, a number, or true or false, as text.
    pub(in crate::config) fn scalar(&self) -> Option<String> {
        match &self.tree {
            Tree::Text(text) => Some(text.clone()),
            Tree::Number(number) => Some(self.place.number(number)),
            Tree::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    /// The node that a JSON Pointer leads to, or the last on the way there.
    pub(in crate::config) fn nearest(&self, pointer: &str) -> &Self {
        let mut node = self;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let below = match &node.tree {
                Tree::List(nodes) => step.parse().ok().and_then(|i: usize| nodes.get(i)),
                _ => node.get(&step),
            };
            let Some(below) = below else { break };
            node = below;
        }
        node
    }

    pub(in crate::config) fn to_json(&self) -> Value {
        match &self.tree {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Number(number) => Value::Number(number.clone()),
            Tree::Text(text) => Value::String(text.clone()),
            Tree::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Tree::Map(entries) => {
                let entries = entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}
