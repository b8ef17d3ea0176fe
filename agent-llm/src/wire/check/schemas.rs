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

/// A rule about schemas, and the repair of a schema that violates it.
pub(super) struct SchemaRule {
    pub(super) rule: &'static str,
    /// Source of the rule, and the date on which it held.
    pub(super) source: &'static str,
    /// Description of the repair.
    pub(super) repair: &'static str,
    pub(super) remedy: &'static str,
    holds: fn(&ToolRules) -> bool,
    /// Repairs the schema; returns a description of alternatives that it removed.
    apply: fn(&mut Value) -> Option<String>,
}

/// Rules about schemas, in the order of repair.
pub(super) const RULES: [SchemaRule; 6] = [
    SchemaRule {
        rule: "schemas follow JSON Schema 2020-12",
        source: "Anthropic: \"JSON schema is invalid. It must match JSON Schema draft 2020-12\" (2026-09)",
        repair: "older keywords are converted, and fields of the wrong type removed",
        remedy: "let the tool's server write draft 2020-12: prefixItems for tuples, numbers in exclusiveMinimum",
        holds: |_| true,
        apply: |schema| {
            walk(schema, &mut modern::rewrite);
            None
        },
    },
    SchemaRule {
        rule: "references point into '#/$defs/'",
        source: "Moonshot: references into other places are not resolved (2026-03)",
        repair: "the targets are moved to '$defs'",
        remedy: "define shared schemas in '$defs'",
        holds: |_| true,
        apply: |schema| {
            references::gather(schema);
            None
        },
    },
    SchemaRule {
        rule: "the root of a schema is an object without 'anyOf', 'oneOf', 'allOf', 'not', 'enum' and '$ref'",
        source: "OpenAI and Anthropic: \"schema must have type 'object' and not have 'anyOf' at the top level\" (2026-05)",
        repair: "the properties of the alternatives are merged; the description lists the alternatives",
        remedy: "split the tool, or move the alternatives into a property",
        holds: |_| true,
        apply: root::flatten,
    },
    SchemaRule {
        rule: "schemas have types, properties, items and enumerations only",
        source: "the provider's refusal of an earlier request",
        repair: "other keywords are removed",
        remedy: "simplify the schema",
        holds: |rules| rules.simple,
        apply: |schema| {
            *schema = simple(schema);
            None
        },
    },
    SchemaRule {
        rule: "an object at the root has 'properties', and an array has 'items'",
        source: "OpenAI: \"object schema missing properties\" (2025-04), \"array schema missing items\" (2024-05)",
        repair: "empty ones are added",
        remedy: "declare the properties of the object, and the items of the array",
        holds: |rules| rules.complete,
        apply: complete,
    },
    SchemaRule {
        rule: "property keys match '^[a-zA-Z0-9_.-]{1,64}$'",
        source: "Anthropic: \"Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'\" (2026-09)",
        repair: "the keys are renamed, and named back for the call",
        remedy: "use short keys of letters, digits, '_', '.' and '-'",
        holds: |rules| rules.plain_keys,
        apply: |schema| {
            walk(schema, &mut rename_keys);
            None
        },
    },
];

/// Returns the schema in a form that the provider accepts, and a description of the alternatives at
/// the root, if it had any.
pub(super) fn repaired(schema: &Value, rules: &ToolRules) -> (Value, Option<String>) {
    let mut schema = schema.clone();
    let steps = RULES.iter().filter(|rule| (rule.holds)(rules));
    let choices: Vec<_> = steps.filter_map(|rule| (rule.apply)(&mut schema)).collect();
    (schema, choices.into_iter().next())
}

/// Returns the rules that the schema violates.
pub(super) fn violated(schema: &Value, rules: &ToolRules) -> Vec<&'static SchemaRule> {
    let mut schema = schema.clone();
    let is_violated = |rule: &&SchemaRule| {
        let before = schema.clone();
        (rule.apply)(&mut schema);
        before != schema
    };
    RULES.iter().filter(|rule| (rule.holds)(rules)).filter(is_violated).collect()
}

/// Adds the fields that each object at the root and each array must have.
fn complete(schema: &mut Value) -> Option<String> {
    if let Some(root) = schema.as_object_mut() {
        root.entry("properties").or_insert_with(|| json!({}));
    }
    walk(schema, &mut |fields| {
        if fields.get("type").is_some_and(|kind| kind == "array") && !fields.contains_key("items") {
            fields.insert("items".into(), json!({}));
        }
    });
    None
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
