//! Check of a node against its schema: every problem, with its place and the nearest known word.
//!
//! It knows the keywords that derived schemas have. Parts check the rest when they are created.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::branch;
use crate::config::{
    near,
    problem::Problem,
    store::StoreAddress,
    text::{Node, Tree},
};

/// Checks the node, and makes it what the schema means: paths are of the file in which they stand, and what came from a reference
/// has the type that is expected there.
pub(in crate::config) fn check(node: &mut Node, schema: &Value, root: &Value, problems: &mut Vec<Problem>) {
    Checker { root, problems }.node(node, schema);
}

pub(super) struct Checker<'a> {
    pub(super) root: &'a Value,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl<'a> Checker<'a> {
    fn node(&mut self, node: &mut Node, schema: &'a Value) {
        if let Value::Object(schema) = self.resolved(schema) {
            self.object(node, schema);
        }
    }

    pub(super) fn object(&mut self, node: &mut Node, schema: &'a Map<String, Value>) {
        if node.is_lost {
            return;
        }
        for part in list(schema, "allOf") {
            self.node(node, part);
        }
        let branches: Vec<&'a Value> = list(schema, "anyOf").chain(list(schema, "oneOf")).collect();
        if !branches.is_empty() {
            self.branches(node, &branches);
        }
        read_as_meant(node, schema);
        if !branch::takes(node, schema) {
            return self.wrong(node, format!("{} is expected here, not {}", branch::wanted(schema), node.kind()));
        }
        if let Some(known) = branch::values(schema) {
            return self.one_of(node, &known);
        }
        match &mut node.tree {
            Tree::Map(_) => self.map(node, schema),
            Tree::List(nodes) => {
                if let Some(items) = schema.get("items") {
                    nodes.iter_mut().for_each(|node| self.node(node, items));
                }
                self.length(node, schema);
            }
            Tree::Number(number) => {
                let number = number.clone();
                self.number(node, &number, schema);
            }
            Tree::Text(_) => self.text(node, schema),
            Tree::Null | Tree::Bool(_) => {}
        }
    }

    /// The schema that a `$ref` leads to.
    pub(super) fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..16 {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
            let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
                break;
            };
            schema = target;
        }
        schema
    }

    fn wrong(&mut self, node: &Node, why: String) {
        self.problems.push(Problem::new(node.place.clone(), why));
    }

    pub(super) fn one_of(&mut self, node: &Node, known: &[&Value]) {
        let value = node.to_json();
        if node.is_lost || known.contains(&&value) {
            return;
        }
        if node.referred {
            // The value of a reference may be a secret.
            return self.wrong(node, "what this refers to is not known here".to_owned());
        }
        let words: Vec<_> = known.iter().filter_map(|value| value.as_str()).collect();
        let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut problem = Problem::new(node.place.clone(), format!("'{written}' is not known here"));
        if let Some(advice) = near::advice(&written, &words, "words") {
            problem = problem.help(advice);
        }
        self.problems.push(problem);
    }

    fn map(&mut self, node: &mut Node, schema: &'a Map<String, Value>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let known: Vec<&str> = properties.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let other = schema.get("additionalProperties");
        let place = node.place.clone();
        let Tree::Map(entries) = &mut node.tree else { return };
        let mut meant = BTreeSet::new();
        for entry in entries.iter_mut() {
            match (properties.and_then(|properties| properties.get(&entry.key)), other) {
                (Some(property), _) => self.node(&mut entry.node, property),
                (None, Some(Value::Bool(false))) => {
                    let mut problem = Problem::new(entry.place.clone(), format!("unknown key '{}'", entry.key));
                    if entry.key == "permission" && known.contains(&"change") {
                        problem = problem
                            .help("the permission of a tool is below 'change': change: {TOOL: {permission: ask}}");
                    } else if let Some(advice) = near::advice(&entry.key, &known, "keys") {
                        problem = problem.help(advice);
                    }
                    meant.extend(near::nearest(&entry.key, &known));
                    self.problems.push(problem);
                }
                (None, Some(other)) => self.node(&mut entry.node, other),
                (None, None) => {}
            }
        }
        for key in list(schema, "required").filter_map(Value::as_str) {
            if node.get(key).is_none() && !meant.contains(key) {
                let about = properties.and_then(|properties| properties.get(key)?.get("description")?.as_str());
                let mut problem = Problem::new(place.clone(), format!("the key '{key}' is missing"));
                if let Some(about) = about {
                    problem = problem.help(about.lines().next().unwrap_or_default());
                }
                self.problems.push(problem);
            }
        }
        self.length(node, schema);
    }

    fn length(&mut self, node: &Node, schema: &Map<String, Value>) {
        let (length, keys) = match &node.tree {
            Tree::List(nodes) => (nodes.len() as u64, ["minItems", "maxItems"]),
            Tree::Map(entries) => (entries.len() as u64, ["minProperties", "maxProperties"]),
            Tree::Text(text) => (text.chars().count() as u64, ["minLength", "maxLength"]),
            _ => return,
        };
        let [least, most] = keys.map(|key| schema.get(key).and_then(Value::as_u64));
        if least.is_some_and(|least| length < least) {
            self.wrong(node, if length == 0 { "it is empty".to_owned() } else { format!("{length} are too few") });
        } else if let Some(most) = most.filter(|most| length > *most) {
            self.wrong(node, format!("{length} are too many; the most are {most}"));
        }
    }

    fn number(&mut self, node: &Node, number: &Number, schema: &Map<String, Value>) {
        let value = number.as_f64().unwrap_or(f64::NAN);
        let bound = |key| schema.get(key).and_then(Value::as_f64);
        let too_small = bound("minimum").filter(|least| value < *least);
        let too_large = bound("maximum").filter(|most| value > *most);
        let at_least = bound("exclusiveMinimum").filter(|least| value <= *least);
        let at_most = bound("exclusiveMaximum").filter(|most| value >= *most);
        let why = match (too_small, too_large, at_least, at_most) {
            (Some(least), ..) => format!("{number} is too small; the least is {least}"),
            (_, Some(most), ..) => format!("{number} is too large; the most is {most}"),
            (_, _, Some(least), _) => format!("{number} is too small; it is more than {least}"),
            (.., Some(most)) => format!("{number} is too large; it is less than {most}"),
            _ => return,
        };
        // The value of a reference may be a secret.
        self.wrong(node, if node.referred { "what this refers to is out of range".to_owned() } else { why });
    }

    fn text(&mut self, node: &mut Node, schema: &Map<String, Value>) {
        let Tree::Text(text) = &mut node.tree else { return };
        match schema.get("format").and_then(Value::as_str) {
            Some("path") => *text = node.place.dir().join(&text).to_string_lossy().into_owned(),
            Some("store") => match text.parse() {
                Ok(StoreAddress::Sqlite(path)) => *text = format!("sqlite:{}", node.place.dir().join(path).display()),
                Ok(_) => {}
                Err(_) if node.referred => {
                    self.problems.push(Problem::new(node.place.clone(), "what this refers to is no store"));
                }
                Err(error) => self.problems.push(Problem::new(node.place.clone(), error.message())),
            },
            Some("secret") if !node.referred => {
                let problem = Problem::new(node.place.clone(), "a secret is not written into a file");
                self.problems.push(problem.help("refer to it: ${env.NAME}, or ${file.PATH}"));
            }
            _ => {}
        }
        self.length(node, schema);
    }
}

pub(super) fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// Nothing stands for an empty map, and a text that came from a reference for the number or the word that it is.
fn read_as_meant(node: &mut Node, schema: &Map<String, Value>) {
    if matches!(node.tree, Tree::Null) && branch::types(schema).eq(["object"]) {
        node.tree = Tree::Map(Vec::new());
    }
    let Tree::Text(text) = &node.tree else { return };
    if !node.referred || branch::takes(node, schema) {
        return;
    }
    let meant = match text.trim() {
        "true" => Tree::Bool(true),
        "false" => Tree::Bool(false),
        text => match text.parse::<Number>() {
            Ok(number) => Tree::Number(number),
            Err(_) => return,
        },
    };
    node.tree = meant;
}
