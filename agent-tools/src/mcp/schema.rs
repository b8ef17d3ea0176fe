//! Schemas of tools as JSON Schema 2020-12, from the forms of older drafts and of generators that write `null`.

use serde_json::{Map, Value, json};

/// Deepest nesting that is converted.
const DEEPEST: usize = 100;

/// Keywords whose value is a schema, a map of schemas or a list of schemas.
const SCHEMA: &[&str] =
    &["additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"];
const MAPS: &[&str] = &["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Converts a schema and those inside it.
pub(super) fn modernise(schema: &mut Value) {
    convert(schema, 0);
    if let Some(schema) = schema.as_object_mut() {
        // It says which draft it was written for.
        schema.remove("$schema");
    }
}

fn convert(schema: &mut Value, depth: usize) {
    let Some(schema) = schema.as_object_mut().filter(|_| depth < DEEPEST) else { return };
    clear(schema);
    limits(schema);
    tuples(schema);
    dependencies(schema);
    for (keyword, value) in schema.iter_mut() {
        match value {
            Value::Object(inner) if MAPS.contains(&keyword.as_str()) => {
                inner.values_mut().for_each(|inner| convert(inner, depth + 1));
            }
            Value::Array(inner) if LISTS.contains(&keyword.as_str()) => {
                inner.iter_mut().for_each(|inner| convert(inner, depth + 1));
            }
            value if SCHEMA.contains(&keyword.as_str()) => convert(value, depth + 1),
            _ => {}
        }
    }
}

/// Drops keywords whose value has a type that no draft has.
fn clear(schema: &mut Map<String, Value>) {
    schema.retain(|keyword, value| match keyword.as_str() {
        "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => value.is_object(),
        "required" | "enum" | "prefixItems" => value.is_array(),
        "allOf" | "anyOf" | "oneOf" => value.as_array().is_some_and(|list| !list.is_empty()),
        "type" => value.is_string() || value.is_array(),
        "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
            !value.is_null()
        }
        "minimum" | "maximum" | "multipleOf" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => value.is_u64(),
        "pattern" | "format" | "$ref" | "title" | "description" => value.is_string(),
        _ => true,
    });
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().filter(|inner| inner.is_null()).for_each(|inner| *inner = json!({}));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(Value::is_string);
    }
}

/// Draft 4: `exclusiveMinimum: true` beside `minimum`.
fn limits(schema: &mut Map<String, Value>) {
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match schema.get(exclusive) {
            Some(Value::Bool(true)) => match schema.remove(limit) {
                Some(value) => drop(schema.insert(exclusive.to_owned(), value)),
                None => drop(schema.remove(exclusive)),
            },
            Some(value) if !value.is_number() => drop(schema.remove(exclusive)),
            _ => {}
        }
    }
}

/// Up to 2019-09: `items` as a list, with `additionalItems`.
fn tuples(schema: &mut Map<String, Value>) {
    let rest = schema.remove("additionalItems");
    if let Some(Value::Array(items)) = schema.get("items") {
        let items = items.clone();
        schema.remove("items");
        if !items.is_empty() {
            schema.insert("prefixItems".to_owned(), items.into());
        }
        if let Some(rest) = rest.filter(|rest| rest.is_object() || rest.is_boolean()) {
            schema.insert("items".to_owned(), rest);
        }
    }
}

/// Up to draft 7: `dependencies`.
fn dependencies(schema: &mut Map<String, Value>) {
    let Some(Value::Object(all)) = schema.remove("dependencies") else { return };
    for (name, value) in all {
        let keyword = if value.is_array() { "dependentRequired" } else { "dependentSchemas" };
        let place = schema.entry(keyword).or_insert_with(|| json!({}));
        if let Some(place) = place.as_object_mut().filter(|_| !value.is_null()) {
            place.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_older_drafts_become_those_of_today() {
        for (old, new) in [
            (json!({"type": "object", "properties": null, "required": null}), json!({"type": "object"})),
            (
                json!({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0, "exclusiveMinimum": true}),
                json!({"exclusiveMinimum": 0}),
            ),
            (json!({"maximum": 9, "exclusiveMaximum": false}), json!({"maximum": 9})),
            (json!({"exclusiveMinimum": 0}), json!({"exclusiveMinimum": 0})),
            (
                json!({"properties": {"a": {"items": [{"type": "string"}, {"items": [{}]}], "additionalItems": false}}}),
                json!({"properties": {"a": {"prefixItems": [{"type": "string"}, {"prefixItems": [{}]}], "items": false}}}),
            ),
            (json!({"items": {"type": "string"}, "additionalItems": false}), json!({"items": {"type": "string"}})),
            (
                json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
                json!({"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}}),
            ),
            (
                json!({"properties": {"a": null, "required": {"type": "string", "required": true}}, "anyOf": []}),
                json!({"properties": {"a": {}, "required": {"type": "string"}}}),
            ),
            (
                json!({"enum": [null, {"items": []}], "default": {"items": []}}),
                json!({"enum": [null, {"items": []}], "default": {"items": []}}),
            ),
        ] {
            let mut schema = old.clone();
            modernise(&mut schema);
            assert_eq!(schema, new, "{old}");
        }
    }
}
