//! The schema for editors: a reference may replace any word or number.

use serde_json::{Value, json};

use crate::config::listed::{INCLUDE, LISTS};

/// Keywords whose values are schemas, or maps or lists of them.
const BELOW: [&str; 7] = ["$defs", "properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf"];

/// The schema of files: with references, and with entries of lists that stand for what other files list.
pub(in crate::config) fn published(schema: &Value) -> Value {
    let mut whole = with_references(schema);
    let entry = json!({
        "type": "object",
        "properties": {INCLUDE: {"type": "string", "description": "The path of a file that lists parts, which stand here."}},
        "required": [INCLUDE],
        "additionalProperties": false,
    });
    for agent in ["", "/$defs/SubAgent", "/$defs/TeamAgent"] {
        for list in LISTS {
            let entries =
                whole.pointer_mut(&format!("{agent}/properties/{list}/items/anyOf")).and_then(Value::as_array_mut);
            entries.into_iter().for_each(|entries| entries.push(entry.clone()));
        }
    }
    either_file(&mut whole);
    whole
}

/// Lets the key `team` decide whether a file describes an agent or a team.
fn either_file(whole: &mut Value) {
    if whole.pointer("/$defs/TeamFile").is_none() {
        return;
    }
    let Some(root) = whole.as_object_mut() else { return };
    let required = root.remove("required").unwrap_or_default();
    root.remove("additionalProperties");
    root.extend([
        ("if".to_owned(), json!({"required": ["team"]})),
        ("then".to_owned(), json!({"$ref": "#/$defs/TeamFile"})),
        ("else".to_owned(), json!({"required": required})),
        ("unevaluatedProperties".to_owned(), json!(false)),
        ("description".to_owned(), json!("An agent, or a team of agents.")),
    ]);
}

/// A schema that takes what this one takes, and references. The check of a file follows them first, and knows better.
fn with_references(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut whole: serde_json::Map<_, _> = map.clone();
            for (key, below) in whole.iter_mut().filter(|(key, _)| BELOW.contains(&key.as_str())) {
                *below = match (key.as_str(), &*below) {
                    ("$defs" | "properties", Value::Object(named)) => {
                        named.iter().map(|(name, schema)| (name.clone(), with_references(schema))).collect()
                    }
                    (_, Value::Array(schemas)) => schemas.iter().map(with_references).collect(),
                    (_, schema) => with_references(schema),
                };
            }
            // A reference fits several of the choices.
            if let Some(choices) = whole.remove("oneOf") {
                whole.insert("anyOf".to_owned(), choices);
            }
            let reference = json!({"type": "string", "pattern": r"\$\{", "description": "What is referred to, such as ${env.NAME}."});
            if let Some(Value::Array(choices)) = whole.get_mut("anyOf")
                && choices.iter().any(|choice| choice.get("const").is_some_and(Value::is_string))
            {
                choices.push(reference.clone());
            }
            if !needs_reference(map) {
                return Value::Object(whole);
            }
            let about = whole.remove("description");
            let mut either = json!({"anyOf": [whole, reference]});
            if let Some(about) = about {
                either["description"] = about;
            }
            either
        }
        other => other.clone(),
    }
}

/// True for what takes words of a list, numbers, or true and false, and no other text.
fn needs_reference(schema: &serde_json::Map<String, Value>) -> bool {
    let is_scalar = |kind: &Value| ["integer", "number", "boolean", "null"].iter().any(|known| kind == known);
    match schema.get("type") {
        Some(Value::Array(kinds)) => schema.contains_key("enum") || kinds.iter().all(is_scalar),
        Some(kind) => schema.contains_key("enum") || (is_scalar(kind) && kind != "null"),
        None => schema.contains_key("enum"),
    }
}
