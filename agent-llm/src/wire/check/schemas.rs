//! Repair of parameter schemas into a form that all providers accept: JSON Schema 2020-12, an
//! object at the root without combinations of schemas, and references into `$defs` only.

mod modern;
mod references;
mod root;

use std::collections::BTreeMap;

use agent_core::tool::portable_keys;
use serde_json::{Map, Value, json};

use super::rules::ToolRules;
use crate::wire::schema::open_api::open_api;

/// Returns the schema in a form that the provider accepts, and a description of the alternatives at
/// the root, if it had any.
pub(super) fn repaired(schema: &Value, rules: &ToolRules) -> (Value, Option<String>) {
    let mut schema = schema.clone();
    walk(&mut schema, &mut modern::rewrite);
    references::gather(&mut schema);
    let choice = root::flatten(&mut schema);
    if rules.simple {
        schema = simple(&schema);
    }
    if rules.complete {
        if let Some(root) = schema.as_object_mut() {
            root.entry("properties").or_insert_with(|| json!({}));
        }
        walk(&mut schema, &mut |fields| {
            if fields.get("type").is_some_and(|kind| kind == "array") && !fields.contains_key("items") {
                fields.insert("items".into(), json!({}));
            }
        });
    }
    if rules.plain_keys {
        walk(&mut schema, &mut rename_keys);
    }
    (schema, choice)
}

/// Reduces the schema to types, properties, items, enumerations and descriptions.
fn simple(schema: &Value) -> Value {
    let mut schema = open_api(schema);
    walk(&mut schema, &mut |fields| {
        fields.retain(|keyword, _| SIMPLE.contains(&keyword.as_str()));
    });
    if let Some(root) = schema.as_object_mut() {
        root.insert("type".into(), "object".into());
        root.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Keywords of simple schemas.
const SIMPLE: [&str; 7] = ["type", "description", "properties", "required", "items", "enum", "anyOf"];

/// Keywords with a nested schema, a list of schemas, or schemas by name.
const ONE: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];
const LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Lets `visit` edit the schema and all nested ones, parents first.
fn walk(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(fields) = schema.as_object_mut() else { return };
    visit(fields);
    for (keyword, value) in fields.iter_mut() {
        match value {
            Value::Object(_) if ONE.contains(&keyword.as_str()) => walk(value, visit),
            Value::Array(list) if LISTS.contains(&keyword.as_str()) => {
                list.iter_mut().for_each(|schema| walk(schema, visit));
            }
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                named.iter_mut().for_each(|(_, schema)| walk(schema, visit));
            }
            _ => {}
        }
    }
}

/// Restricts property keys to letters, digits, `_`, `.` and `-`. Argument names are mapped back in
/// the same way.
fn rename_keys(fields: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    let renamed: BTreeMap<String, String> = portable_keys(properties.keys().map(String::as_str)).into_iter().collect();
    if renamed.is_empty() {
        return;
    }
    for (key, portable) in &renamed {
        if let Some(mut schema) = properties.remove(key) {
            if let Some(fields) = schema.as_object_mut().filter(|fields| !fields.contains_key("description")) {
                fields.insert("description".into(), format!("'{key}'").into());
            }
            properties.insert(portable.clone(), schema);
        }
    }
    for required in fields.get_mut("required").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(portable) = required.as_str().and_then(|key| renamed.get(key)) {
            *required = portable.as_str().into();
        }
    }
}
