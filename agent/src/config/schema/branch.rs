//! Selection among several schemas.

use serde_json::{Map, Value};

use super::check::{Checker, list};
use crate::config::{
    near,
    problem::Problem,
    text::{Node, Tree},
};

/// The types that a schema takes; none if it says nothing of types.
pub(super) fn types(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match schema.get("type") {
        Some(Value::String(one)) => (Some(one.as_str()), [].as_slice()),
        Some(Value::Array(many)) => (None, many.as_slice()),
        _ => (None, [].as_slice()),
    };
    one.into_iter().chain(many.iter().filter_map(Value::as_str))
}

/// Returns true if the schema accepts the type of the node.
pub(super) fn takes(node: &Node, schema: &Map<String, Value>) -> bool {
    let fits = |kind: &str| match &node.tree {
        Tree::Null => kind == "null",
        Tree::Bool(_) => kind == "boolean",
        Tree::Number(number) => {
            kind == "number" || (kind == "integer" && number.as_f64().is_some_and(|n| n.fract() == 0.0))
        }
        Tree::Text(_) => kind == "string",
        Tree::List(_) => kind == "array",
        Tree::Map(_) => kind == "object",
    };
    let mut types = types(schema).peekable();
    types.peek().is_none() || types.any(fits)
}

/// Describes the types that a schema accepts.
pub(super) fn wanted(schema: &Map<String, Value>) -> String {
    let word = |kind: &str| match kind {
        "null" => "nothing",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        _ => "a map",
    };
    let kinds: Vec<_> = types(schema).filter(|kind| *kind != "null").map(word).collect();
    kinds.join(" or ")
}

/// The values that a schema takes, if it lists them.
pub(super) fn values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// Checks the node against the schema that is meant.
    pub(super) fn branches(&mut self, node: &mut Node, branches: &[&'a Value]) {
        let mut all = Vec::new();
        branches.iter().for_each(|branch| self.flat(branch, &mut all));
        let of_kind = |schema: &&Map<String, Value>| {
            takes(node, schema) || (matches!(node.tree, Tree::Null) && types(schema).eq(["object"]))
        };
        let mut fit: Vec<_> = all.iter().copied().filter(of_kind).collect();
        if fit.is_empty() && node.referred {
            fit.clone_from(&all);
        }
        match (&node.tree, fit.as_slice()) {
            (_, []) => {
                let mut wanted: Vec<_> =
                    all.iter().map(|schema| wanted(schema)).filter(|word| !word.is_empty()).collect();
                wanted.dedup();
                let why = format!("{} is expected here, not {}", wanted.join(" or "), node.kind());
                self.problems.push(Problem::new(node.place.clone(), why));
            }
            (_, [one]) => self.object(node, one),
            (Tree::Text(_), some) if some.iter().all(|schema| values(schema).is_some()) => {
                let known: Vec<_> = some.iter().filter_map(|schema| values(schema)).flatten().collect();
                self.one_of(node, &known);
            }
            (Tree::Map(_), some) => self.map_branches(node, some),
            (_, some) => self.best(node, some),
        }
    }

    /// The schemas that are no choice themselves.
    fn flat(&self, schema: &'a Value, all: &mut Vec<&'a Map<String, Value>>) {
        let Value::Object(schema) = self.resolved(schema) else { return };
        let mut below = list(schema, "anyOf").chain(list(schema, "oneOf")).peekable();
        if below.peek().is_some() && types(schema).next().is_none() {
            below.for_each(|schema| self.flat(schema, all));
        } else {
            all.push(schema);
        }
    }

    fn map_branches(&mut self, node: &mut Node, some: &[&'a Map<String, Value>]) {
        // A key that says by its value which is meant.
        let tag = some.iter().find_map(|schema| {
            let properties = schema.get("properties")?.as_object()?;
            let is_tag =
                |key: &&String| some.iter().all(|schema| tag_values(schema, key).is_some()) && node.get(key).is_some();
            properties.keys().find(is_tag)
        });
        if let Some(tag) = tag {
            let value = node.get(tag).map(Node::to_json);
            let meant: Vec<_> = some
                .iter()
                .copied()
                .filter(|schema| {
                    tag_values(schema, tag).is_some_and(|values| values.iter().any(|v| Some(*v) == value.as_ref()))
                })
                .collect();
            match meant.as_slice() {
                [] => {
                    let known: Vec<_> = some.iter().filter_map(|schema| tag_values(schema, tag)).flatten().collect();
                    let tagged = node.get(tag).cloned();
                    tagged.iter().for_each(|node| self.one_of(node, &known));
                }
                [one] => self.object(node, one),
                several => self.best(node, several),
            }
            return;
        }
        // A key that says by its being there which is meant.
        let has_required = |schema: &&Map<String, Value>| {
            list(schema, "required").filter_map(Value::as_str).all(|key| node.get(key).is_some())
        };
        let meant: Vec<_> = some.iter().copied().filter(has_required).collect();
        let strict = |schema: &Map<String, Value>| list(schema, "required").next().is_some();
        match meant.as_slice() {
            [] if some.iter().all(|schema| list(schema, "required").count() == 1) => {
                let known: Vec<_> =
                    some.iter().flat_map(|schema| list(schema, "required")).filter_map(Value::as_str).collect();
                let common = |key: &str| {
                    some.iter().all(|schema| schema.get("properties").is_some_and(|known| known.get(key).is_some()))
                };
                match node.entries().iter().find(|entry| !common(&entry.key)) {
                    Some(entry) => {
                        let problem = Problem::new(entry.place.clone(), format!("'{}' is not known here", entry.key));
                        let advice = near::advice(&entry.key, &known, "names");
                        self.problems.push(problem.help(advice.unwrap_or_default()));
                    }
                    None => {
                        let problem = Problem::new(node.place.clone(), "a name is missing");
                        self.problems.push(problem.help(format!("one of: {}", known.join(", "))));
                    }
                }
            }
            [] => self.best(node, some),
            [one] => self.object(node, one),
            several => match several.iter().copied().filter(|schema| strict(schema)).collect::<Vec<_>>().as_slice() {
                [one] => self.object(node, one),
                _ => self.best(node, several),
            },
        }
    }

    /// Checks against the schema of which the least is wrong.
    fn best(&mut self, node: &mut Node, some: &[&'a Map<String, Value>]) {
        let tried = some.iter().map(|schema| {
            let (mut copy, mut problems) = (node.clone(), Vec::new());
            Checker { root: self.root, problems: &mut problems }.object(&mut copy, schema);
            (copy, problems)
        });
        if let Some((best, problems)) = tried.min_by_key(|(_, problems)| problems.len()) {
            *node = best;
            self.problems.extend(problems);
        }
    }
}

/// The values of a key that must have one of them.
fn tag_values<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<Vec<&'a Value>> {
    if !list(schema, "required").any(|required| required == key) {
        return None;
    }
    values(schema.get("properties")?.get(key)?.as_object()?)
}
