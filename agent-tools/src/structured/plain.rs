//! Subset of JSON Schema that every provider with schema enforcement accepts.

use serde_json::Value;

/// Keywords that a schema may use. Bounds of numbers, texts and lists that a provider cannot
/// enforce are checked in the answer.
const KEYWORDS: [&str; 26] = [
    "$schema",
    "$defs",
    "$ref",
    "definitions",
    "title",
    "description",
    "default",
    "type",
    "enum",
    "const",
    "format",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

/// Keywords of which at least one must constrain a value.
const TELLING: [&str; 6] = ["type", "enum", "const", "$ref", "anyOf", "oneOf"];

/// Returns true if `schema` has only objects with fixed fields, no tuples and no recursion.
pub(super) fn is_plain(schema: &Value) -> bool {
    is_plain_in(schema, schema, &mut Vec::new())
}

/// `within` holds the references that led here.
fn is_plain_in<'a>(root: &'a Value, schema: &'a Value, within: &mut Vec<&'a str>) -> bool {
    let Value::Object(fields) = schema else { return false };
    let known = fields.keys().all(|keyword| KEYWORDS.contains(&keyword.as_str()));
    if !known || !TELLING.iter().any(|keyword| fields.contains_key(*keyword)) {
        return false;
    }
    fields.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
        ("additionalProperties", open) => *open == Value::Bool(false),
        ("properties", Value::Object(properties)) => properties.values().all(|of| is_plain_in(root, of, within)),
        ("anyOf" | "oneOf", Value::Array(choices)) => choices.iter().all(|choice| is_plain_in(root, choice, within)),
        ("items", items) => is_plain_in(root, items, within),
        ("$ref", Value::String(target)) => {
            let Some(found) = target.strip_prefix('#').and_then(|path| root.pointer(path)) else { return false };
            if within.contains(&target.as_str()) {
                return false;
            }
            within.push(target);
            let plain = is_plain_in(root, found, within);
            within.pop();
            plain
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;

    fn plain<T: JsonSchema>() -> bool {
        is_plain(&crate::schema::of_type::<T>().0)
    }

    #[test]
    fn structs_lists_and_choices_are_plain() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is looked at")]
        struct Order {
            /// Number of items.
            number: u8,
            lines: Vec<Line>,
            paid: Option<f64>,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is looked at")]
        enum Line {
            /// Nothing.
            Empty,
            Item {
                name: String,
                twin: Option<Twin>,
            },
        }
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is looked at")]
        struct Twin {
            name: String,
        }
        assert!(plain::<Order>());
    }

    #[test]
    fn maps_tuples_trees_and_anything_are_not() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is looked at")]
        struct Tree {
            branches: Vec<Self>,
        }
        assert!(!plain::<BTreeMap<String, u8>>() && !plain::<(u8, String)>() && !plain::<Tree>() && !plain::<Value>());
        assert!(!is_plain(&json!({"type": "object", "properties": {"a": true}})));
        assert!(!is_plain(&json!({"type": "object", "properties": {"a": {"$ref": "https://a.test/b"}}})));
    }
}
