//! Flattening of the root: an object with direct properties, without alternatives.

use serde_json::{Map, Value, json};

/// Maximum depth of references and combinations followed from the root.
const DEEPEST: usize = 8;

/// Merges everything that the root refers to, combines or chooses from. A property is only required
/// if every alternative requires it. Returns a description of the alternatives.
pub(super) fn flatten(schema: &mut Value) -> Option<String> {
    let defs = schema.get("$defs").cloned().unwrap_or_default();
    let root = schema.as_object_mut()?;
    let is_plain = !["$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"].iter().any(|k| root.contains_key(*k));
    let is_object = root.get("type").is_some_and(|kind| kind == "object");
    if is_plain && is_object {
        return None;
    }
    let mut choices = Vec::new();
    let mut flat = flat(std::mem::take(root), &defs, DEEPEST, &mut choices);
    flat.insert("type".into(), "object".into());
    *root = flat;
    (!choices.is_empty()).then(|| choices.join("\n"))
}

fn flat(mut schema: Map<String, Value>, defs: &Value, room: usize, choices: &mut Vec<String>) -> Map<String, Value> {
    let mut parts = Vec::new();
    if let Some(Value::String(pointer)) = schema.remove("$ref") {
        parts.extend(pointer.strip_prefix("#/$defs/").and_then(|name| defs.get(name)).cloned());
    }
    if let Some(Value::Array(all)) = schema.remove("allOf") {
        parts.extend(all);
    }
    let alternatives: Vec<_> = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.remove(*keyword)).collect();
    ["not", "enum", "const"].iter().for_each(|keyword| drop(schema.remove(*keyword)));
    let was_closed = schema.get("additionalProperties").cloned();
    let parts = parts.into_iter().filter_map(into_object).take_while(|_| room > 0);
    for part in parts.collect::<Vec<_>>() {
        lay(&mut schema, flat(part, defs, room - 1, choices));
    }
    for alternatives in alternatives {
        let Value::Array(alternatives) = alternatives else { continue };
        let objects = alternatives.into_iter().filter_map(into_object).take_while(|_| room > 0);
        let mut objects: Vec<_> = objects.map(|schema| flat(schema, defs, room - 1, choices)).collect();
        if objects.is_empty() {
            continue;
        }
        choices.push(in_words(&objects));
        let in_all = |name: &Value| objects.iter().all(|object| required(object).contains(name));
        let common: Vec<Value> = required(&objects[0]).iter().filter(|name| in_all(name)).cloned().collect();
        for object in &mut objects {
            object.insert("required".into(), common.clone().into());
            object.remove("title");
            object.remove("description");
            lay(&mut schema, std::mem::take(object));
        }
    }
    // A closed part does not close the whole object.
    schema.remove("additionalProperties");
    schema.extend(was_closed.map(|closed| ("additionalProperties".to_owned(), closed)));
    if required(&schema).is_empty() {
        schema.remove("required");
    }
    schema
}

fn into_object(schema: Value) -> Option<Map<String, Value>> {
    match schema {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn required(schema: &Map<String, Value>) -> &[Value] {
    schema.get("required").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Merges the fields of `over` into `base`. A property of both may match either schema.
fn lay(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (keyword, value) in over {
        match (base.get_mut(&keyword), value) {
            (Some(Value::Object(known)), Value::Object(more)) if matches!(keyword.as_str(), "properties" | "$defs") => {
                for (name, schema) in more {
                    match known.get_mut(&name) {
                        Some(was) if *was != schema => *was = either(was.take(), schema),
                        Some(_) => {}
                        None => drop(known.insert(name, schema)),
                    }
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => {
                let new: Vec<_> = more.into_iter().filter(|name| !known.contains(name)).collect();
                known.extend(new);
            }
            (None, value) => drop(base.insert(keyword, value)),
            (Some(_), _) => {}
        }
    }
}

fn either(was: Value, other: Value) -> Value {
    match was {
        Value::Object(mut fields) if fields.len() == 1 && fields.get("anyOf").is_some_and(Value::is_array) => {
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf")
                && !choices.contains(&other)
            {
                choices.push(other);
            }
            fields.into()
        }
        was => json!({"anyOf": [was, other]}),
    }
}

/// Describes the alternatives by the parameters that each requires.
fn in_words(alternatives: &[Map<String, Value>]) -> String {
    let one = |schema: &Map<String, Value>| {
        let names: Vec<_> = required(schema).iter().filter_map(Value::as_str).collect();
        let names = if names.is_empty() {
            let all = schema.get("properties").and_then(Value::as_object);
            all.map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default()
        } else {
            names
        };
        if names.is_empty() { "none of them".to_owned() } else { names.join(" and ") }
    };
    format!("Give one of these sets of parameters: {}.", alternatives.iter().map(one).collect::<Vec<_>>().join("; "))
}
