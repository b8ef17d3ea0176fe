//! Conversion of JSON Schema into the subset of OpenAPI 3.0 in the API's older fields.

use std::cell::Cell;

use serde_json::{Map, Value, json};

/// Keywords with the same meaning in both, without nested schemas.
const SHARED: [&str; 16] = [
    "title",
    "description",
    "default",
    "example",
    "nullable",
    "required",
    "propertyOrdering",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Formats that the API supports; it rejects others.
const FORMATS: [&str; 6] = ["date-time", "enum", "int32", "int64", "float", "double"];

/// Maximum depth of nested references. A recursive schema is cut there and allows any value.
const DEEPEST: usize = 8;

/// Maximum number of schemas in the output: inlining multiplies references.
const MOST_SCHEMAS: usize = 4_000;

/// Converts `schema` to the API's older dialect:
///
/// * a reference is replaced by its target;
/// * `oneOf` becomes `anyOf`, and the parts of an `allOf` are merged;
/// * a type that may be null becomes `nullable`, and a list of types an `anyOf`;
/// * a constant text becomes an enumeration of one; enumerations of other types, and empty texts,
///   are left out;
/// * a list without `items` accepts any items, and only existing properties may be required;
/// * all other unsupported keywords are left out.
///
/// A schema already in that dialect is unchanged.
pub(crate) fn open_api(schema: &Value) -> Value {
    Projection { root: schema, left: Cell::new(MOST_SCHEMAS) }.of(schema, 0)
}

struct Projection<'a> {
    root: &'a Value,
    /// Number of schemas that may still be written.
    left: Cell<usize>,
}

impl Projection<'_> {
    fn of(&self, schema: &Value, depth: usize) -> Value {
        let Value::Object(fields) = schema else { return json!({}) };
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return json!({}),
        }
        let mut out = Map::new();
        if let Some(target) = fields.get("$ref").and_then(|path| self.target(path.as_str()?)) {
            if depth >= DEEPEST {
                return json!({});
            }
            lay(&mut out, self.of(target, depth + 1));
        }
        for part in items(fields, "allOf") {
            lay(&mut out, self.of(part, depth));
        }
        for (name, value) in fields {
            match (name.as_str(), value) {
                (name, value) if SHARED.contains(&name) => drop(out.insert(name.into(), value.clone())),
                ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => {
                    out.insert(name.clone(), value.clone());
                }
                ("enum", Value::Array(values)) if values.iter().all(Value::is_string) => {
                    let said: Vec<_> = values.iter().filter(|value| *value != "").cloned().collect();
                    if !said.is_empty() {
                        out.insert(name.clone(), said.into());
                    }
                }
                ("const", Value::String(_)) => drop(out.insert("enum".into(), json!([value]))),
                ("items", items) => drop(out.insert(name.clone(), self.of(items, depth))),
                ("properties", Value::Object(properties)) if !properties.is_empty() => {
                    let properties = properties.iter().map(|(name, schema)| (name.clone(), self.of(schema, depth)));
                    out.insert(name.clone(), properties.collect());
                }
                ("type", kind) => set_type(&mut out, kind),
                _ => {}
            }
        }
        for name in ["anyOf", "oneOf"] {
            self.any_of(items(fields, name), depth, &mut out);
        }
        if out.get("type").is_some_and(|kind| kind == "array") {
            out.entry("items").or_insert_with(|| json!({}));
        }
        if out.get("format").is_some_and(|format| format == "enum") && !out.contains_key("enum") {
            out.remove("format");
        }
        if let Some(Value::Array(mut required)) = out.remove("required") {
            let properties = out.get("properties").and_then(Value::as_object);
            required
                .retain(|name| name.as_str().is_some_and(|name| properties.is_some_and(|all| all.contains_key(name))));
            if !required.is_empty() {
                out.insert("required".into(), required.into());
            }
        }
        Value::Object(out)
    }

    fn any_of(&self, choices: &[Value], depth: usize, out: &mut Map<String, Value>) {
        let (null, others): (Vec<_>, Vec<_>) = choices.iter().partition(|choice| choice["type"] == "null");
        if !null.is_empty() {
            out.insert("nullable".into(), true.into());
        }
        let mut others: Vec<_> = others.into_iter().map(|choice| self.of(choice, depth)).collect();
        match others.len() {
            0 => {}
            1 if !null.is_empty() => lay(out, others.remove(0)),
            _ => drop(out.insert("anyOf".into(), others.into())),
        }
    }

    /// Returns the target of a reference within the schema.
    fn target(&self, path: &str) -> Option<&Value> {
        self.root.pointer(path.strip_prefix('#')?)
    }
}

fn items<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn set_type(out: &mut Map<String, Value>, kind: &Value) {
    let Value::Array(kinds) = kind else { return drop(out.insert("type".into(), kind.clone())) };
    let (null, others): (Vec<_>, Vec<_>) = kinds.iter().partition(|kind| *kind == "null");
    if !null.is_empty() {
        out.insert("nullable".into(), true.into());
    }
    match *others {
        [] => {}
        [kind] => drop(out.insert("type".into(), kind.clone())),
        _ => drop(out.insert("anyOf".into(), others.iter().map(|kind| json!({"type": kind})).collect())),
    }
}

/// Merges the fields of `over` into `out`, including properties.
fn lay(out: &mut Map<String, Value>, over: Value) {
    let Value::Object(over) = over else { return };
    for (name, value) in over {
        match (out.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(more)) if name == "properties" => known.extend(more),
            (Some(Value::Array(known)), Value::Array(more)) if name == "required" => known.extend(more),
            (_, value) => drop(out.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_form_has_stays_and_the_rest_is_left_out() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "type": "object",
            "additionalProperties": false, "required": ["a"],
            "properties": {
                "a": {"type": "string", "format": "uuid", "minLength": 1},
                "b": {"type": "integer", "format": "int32", "exclusiveMinimum": 0, "enum": [1, 2]},
                "c": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "uniqueItems": true},
                "d": {"const": "only"},
            },
        });
        let expected = json!({
            "title": "T", "type": "object", "required": ["a"],
            "properties": {
                "a": {"type": "string", "minLength": 1},
                "b": {"type": "integer", "format": "int32"},
                "c": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
                "d": {"enum": ["only"]},
            },
        });
        assert_eq!(open_api(&schema), expected);
        assert_eq!(open_api(&expected), expected, "what is in that form stays");
    }

    #[test]
    fn what_may_be_null_is_nullable() {
        assert_eq!(open_api(&json!({"type": ["string", "null"]})), json!({"type": "string", "nullable": true}));
        let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"});
        assert_eq!(open_api(&optional), json!({"type": "string", "nullable": true, "description": "d"}));
        let either = json!({"oneOf": [{"type": "string"}, {"type": "integer"}]});
        assert_eq!(open_api(&either), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
        let types = json!({"type": ["string", "integer"]});
        assert_eq!(open_api(&types), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
    }

    #[test]
    fn references_are_followed_and_a_schema_that_holds_itself_ends() {
        let schema = json!({
            "$defs": {
                "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
                "Name": {"type": "string"},
            },
            "type": "object",
            "properties": {"name": {"$ref": "#/$defs/Name", "description": "d"}, "tree": {"$ref": "#/$defs/Tree"}},
        });
        let flat = open_api(&schema);
        assert_eq!(flat["properties"]["name"], json!({"type": "string", "description": "d"}));
        let mut tree = &flat["properties"]["tree"];
        for _ in 0..DEEPEST {
            assert_eq!(tree["type"], "object");
            tree = &tree["properties"]["next"];
        }
        assert_eq!(*tree, json!({}));
    }

    #[test]
    fn the_parts_of_a_whole_are_put_together() {
        let schema = json!({"allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]});
        let together = json!({
            "type": "object", "required": ["a", "b"],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        });
        assert_eq!(open_api(&schema), together);
    }
}
