//! Static analysis of a schema: types and property names that can be determined without a value.

use std::collections::BTreeSet;

use agent_core::tool::portable_keys;
use serde_json::{Map, Value};

use super::types::{Type, Types};

/// Maximum of schemas visited for one question. A schema may be untrusted and refer to itself.
const MOST_SCHEMAS: usize = 256;

/// Schema document.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    root: &'a Value,
}

impl<'a> Shape<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root }
    }

    pub(super) fn root(self) -> &'a Value {
        self.root
    }

    /// Returns the types that a value may have: possibly too many, never too few.
    pub(super) fn types(self, schema: &'a Value) -> Types {
        self.types_within(schema, &mut MOST_SCHEMAS.clone())
    }

    fn types_within(self, schema: &'a Value, budget: &mut usize) -> Types {
        let (Some(schema), Some(left)) = (schema.as_object(), budget.checked_sub(1)) else { return Types::ANY };
        *budget = left;
        let mut types = stated(schema);
        if let Some(target) = self.target(schema) {
            types = types.intersect(self.types_within(target, budget));
        }
        for part in list(schema, "allOf") {
            types = types.intersect(self.types_within(part, budget));
        }
        for choice in ["anyOf", "oneOf"] {
            if schema.contains_key(choice) {
                let any = list(schema, choice).map(|part| self.types_within(part, budget));
                types = types.intersect(any.fold(Types::NONE, Types::union));
            }
        }
        types
    }

    /// Returns the schema, and every other schema that applies, or may apply, to the same value.
    pub(super) fn parts(self, schema: &'a Value) -> Vec<&'a Map<String, Value>> {
        let mut parts: Vec<_> = schema.as_object().into_iter().collect();
        let mut next = 0;
        while let Some(&part) = parts.get(next) {
            next += 1;
            let choices = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|k| list(part, k));
            let conditions = ["if", "then", "else"].into_iter().filter_map(|k| part.get(k));
            for found in choices.chain(conditions).chain(self.target(part)).filter_map(Value::as_object) {
                if parts.len() < MOST_SCHEMAS && !parts.iter().any(|known| std::ptr::eq(*known, found)) {
                    parts.push(found);
                }
            }
        }
        parts
    }

    /// Returns the names of the root's properties, and whether additional properties are allowed.
    pub(super) fn parameters(self) -> (BTreeSet<String>, bool) {
        let parts = self.parts(self.root);
        let names =
            parts.iter().filter_map(|p| p.get("properties")?.as_object()).flat_map(Map::keys).cloned().collect();
        let open = parts.iter().any(|part| {
            let allows = |k| part.get(k).is_some_and(|v: &Value| *v != Value::Bool(false));
            let unresolved = part.contains_key("$ref") && self.target(part).is_none();
            unresolved || ["additionalProperties", "unevaluatedProperties", "patternProperties"].into_iter().any(allows)
        });
        (names, open)
    }

    /// Returns the property keys anywhere in the document that some providers reject, each as
    /// (portable key, key).
    pub(super) fn portable_keys(self) -> Vec<(String, String)> {
        let (mut found, mut open) = (Vec::new(), vec![self.root]);
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::Object(properties)) = fields.get("properties") {
                        let keys = portable_keys(properties.keys().map(String::as_str));
                        found.extend(keys.into_iter().map(|(key, portable)| (portable, key)));
                    }
                    open.extend(fields.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Resolves a `$ref` within the document.
    fn target(self, schema: &'a Map<String, Value>) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the types that `type`, `enum` and `const` allow. An integer is a number too.
fn stated(schema: &Map<String, Value>) -> Types {
    let named = |name: &Value| match name.as_str().and_then(Type::named) {
        Some(Type::Number) => Types::from(Type::Number).union(Type::Integer.into()),
        Some(other) => other.into(),
        None => Types::ANY,
    };
    let of_value = |value: &Value| Type::of(value).into();
    let any = |types: &mut dyn Iterator<Item = Types>| types.fold(Types::NONE, Types::union);
    let types = match schema.get("type") {
        Some(Value::Array(names)) => any(&mut names.iter().map(named)),
        Some(name) => named(name),
        None => Types::ANY,
    };
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => of_value(value),
        (None, Some(Value::Array(values))) => any(&mut values.iter().map(of_value)),
        _ => Types::ANY,
    };
    types.intersect(values)
}
