//! Valid arguments corrupted at one place, with a simple interpretation of the schema that uses no
//! validator.

use serde_json::{Value, json};

/// Arguments that violate their schema, and the name of the corrupted place.
#[derive(Debug)]
pub(super) struct Corrupted {
    pub(super) arguments: Value,
    pub(super) place: String,
}

/// Returns these arguments once without a required parameter, and once with a value of another
/// type, where the schema states requirements and types unconditionally.
pub(super) fn corrupted(schema: &Value, arguments: &Value) -> Vec<Corrupted> {
    let mut places = Vec::new();
    visit(schema, arguments, &[], &mut places);
    let made_wrong = |place: Place| {
        let mut wrong = arguments.clone();
        let pointer: String = place.path.iter().map(Step::pointer).collect();
        let at = wrong.pointer_mut(&pointer)?;
        match place.missing {
            Some(name) => drop(at.as_object_mut()?.remove(&name)),
            None => *at = json!({"corrupted": [true]}),
        }
        Some(Corrupted { arguments: wrong, place: place.name })
    };
    places.into_iter().filter_map(made_wrong).collect()
}

/// Place at which a value can be corrupted.
struct Place {
    path: Vec<Step>,
    /// Field to remove; `None` to replace the value itself.
    missing: Option<String>,
    name: String,
}

#[derive(Clone)]
enum Step {
    Field(String),
    Item(usize),
}

impl Step {
    fn pointer(&self) -> String {
        match self {
            Self::Field(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            Self::Item(at) => format!("/{at}"),
        }
    }
}

fn name_of(path: &[Step]) -> String {
    path.iter().fold(String::new(), |name, step| match step {
        Step::Field(field) if name.is_empty() => field.clone(),
        Step::Field(field) => format!("{name}.{field}"),
        Step::Item(at) => format!("{name}[{at}]"),
    })
}

fn visit(schema: &Value, value: &Value, path: &[Step], places: &mut Vec<Place>) {
    let is_conditional = ["anyOf", "oneOf", "allOf", "not", "if", "$ref"].iter().any(|key| !schema[key].is_null());
    if is_conditional || schema["nullable"] == true {
        return;
    }
    let below = |step: Step| path.iter().cloned().chain([step]).collect::<Vec<_>>();
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(fields)) => {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if fields.contains_key(name) {
                    let name_there = name_of(&below(Step::Field(name.to_owned())));
                    places.push(Place { path: path.to_vec(), missing: Some(name.to_owned()), name: name_there });
                }
            }
            for (name, value) in fields {
                visit(&schema["properties"][name], value, &below(Step::Field(name.clone())), places);
            }
        }
        (Some("array"), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                visit(&schema["items"], item, &below(Step::Item(at)), places);
            }
        }
        (Some("string" | "integer" | "number" | "boolean"), _) if !path.is_empty() => {
            places.push(Place { path: path.to_vec(), missing: None, name: name_of(path) });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_whose_type_is_certain_is_made_wrong_once() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["id"],
        });
        let arguments = json!({"id": "a", "rows": [{"n": 1}], "either": "b"});
        let found = corrupted(&schema, &arguments);
        let places: Vec<_> = found.iter().map(|one| (&*one.place, one.arguments.clone())).collect();
        let wrong = json!({"corrupted": [true]});
        assert_eq!(
            places,
            [
                ("id", json!({"rows": [{"n": 1}], "either": "b"})),
                ("id", json!({"id": wrong, "rows": [{"n": 1}], "either": "b"})),
                ("rows[0].n", json!({"id": "a", "rows": [{}], "either": "b"})),
                ("rows[0].n", json!({"id": "a", "rows": [{"n": wrong}], "either": "b"})),
            ]
        );
    }
}
