//! Output format of an answer: its schema for the model, and its parser.

use std::{fmt, sync::Arc};

use agent_core::{OutputFormat, Result};
use serde_json::{Map, Value, json};

use super::{find::json_in, plain::is_plain};
use crate::{arguments::Shape, check_value};

/// Field that wraps a value which is not an object: providers accept only objects.
const VALUE: &str = "value";

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 64;

/// Output format of answers.
#[derive(Clone)]
pub(super) struct Form {
    /// Format as sent to the model.
    pub(super) format: OutputFormat,
    /// True if every provider that enforces schemas accepts this one.
    pub(super) is_plain: bool,
    schema: Value,
    check: Arc<Check>,
}

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

impl Form {
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if `schema` is not a valid JSON Schema.
    pub(super) fn new(name: &str, description: Option<String>, schema: Value) -> Result<Self> {
        let check = check_value(&schema)?;
        let shown = if schema["type"] == "object" { schema.clone() } else { wrapped(schema.clone()) };
        let is_plain = is_plain(&shown);
        let mut format = OutputFormat::new(valid_name(name), shown);
        format.description = description;
        Ok(Self { format, is_plain, schema, check: Arc::new(check) })
    }

    /// Returns the valid value in a model's text. If there are several, the last valid one is the
    /// answer.
    ///
    /// # Errors
    /// The problems of the last value, for the model.
    pub(super) fn read(&self, text: &str, accept: &Check) -> Result<Value, String> {
        let mut problems = None;
        for value in json_in(text).into_iter().rev() {
            let mut value = self.unwrapped(value);
            Shape::new(&self.schema).coerce_value(&mut value);
            match (self.check)(&value).and_then(|()| accept(&value)) {
                Ok(()) => return Ok(value),
                Err(why) => problems = problems.or(Some(why)),
            }
        }
        Err(problems.unwrap_or_else(|| "there is no JSON in it".to_owned()))
    }

    /// Unwraps the answer; some models omit the wrapper.
    fn unwrapped(&self, value: Value) -> Value {
        match value {
            Value::Object(mut fields) if self.is_wrapped() && fields.len() == 1 => {
                fields.remove(VALUE).unwrap_or(Value::Object(fields))
            }
            other => other,
        }
    }

    /// Unwraps a partial answer.
    pub(super) fn within<'a>(&self, partial: &'a Value) -> Option<&'a Value> {
        if self.is_wrapped() { partial.get(VALUE) } else { Some(partial) }
    }

    fn is_wrapped(&self) -> bool {
        self.schema["type"] != "object"
    }
}

/// Wraps a schema in an object. Definitions stay at the root, where every provider looks for them.
fn wrapped(mut schema: Value) -> Value {
    let mut whole = Map::new();
    for definitions in ["$defs", "definitions"] {
        if let Some(found) = schema.as_object_mut().and_then(|fields| fields.remove(definitions)) {
            whole.insert(definitions.to_owned(), found);
        }
    }
    move_references(&mut schema);
    whole.insert("type".to_owned(), json!("object"));
    whole.insert("properties".to_owned(), json!({VALUE: schema}));
    whole.insert("required".to_owned(), json!([VALUE]));
    whole.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(whole)
}

/// Adjusts references to the old root, or into it, to its new location.
fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get_mut("$ref")
                && let Some(path) = target.strip_prefix('#')
                && !path.starts_with("/$defs/")
                && !path.starts_with("/definitions/")
            {
                *target = format!("#/properties/{VALUE}{path}");
            }
            fields.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

/// Returns a name that every provider accepts.
fn valid_name(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(valid).take(LONGEST_NAME).collect()
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schema: Value, text: &str) -> Result<Value, String> {
        Form::new("x", None, schema).expect("a form").read(text, &|_| Ok(()))
    }

    #[test]
    fn what_is_no_object_is_wrapped_in_one_and_read_with_it_and_without() {
        let list = json!({"type": "array", "items": {"type": "integer"}});
        let form = Form::new("a list<T>", None, list.clone()).expect("a form");
        assert_eq!((form.format.name.as_str(), &form.format.schema["properties"][VALUE]), ("a_list_T_", &list));
        for text in [r#"{"value": [1, 2]}"#, "[1, 2]", r#"{"value": ["1", 2]}"#] {
            assert_eq!(read(list.clone(), text), Ok(json!([1, 2])), "{text}");
        }
        assert_eq!(read(list, r#"{"values": [1]}"#), Err("it must be an array, got an object".to_owned()));
        assert_eq!(read(json!({"type": "integer"}), "42"), Ok(json!(42)));
    }

    #[test]
    fn a_wrapped_schema_still_finds_what_it_refers_to() {
        let tree = json!({
            "anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}, {"$ref": "#/$defs/word"}],
            "$defs": {"word": {"type": "string"}},
        });
        let form = Form::new("tree", None, tree).expect("a form");
        let check = check_value(&form.format.schema).expect("valid");
        assert_eq!(check(&json!({"value": [1, ["a", [2]]]})), Ok(()));
        assert!(check(&json!({"value": [1, [true]]})).is_err());
    }

    #[test]
    fn of_several_values_the_last_that_fits_is_the_answer() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        assert_eq!(read(schema.clone(), r#"{"a": 1}? No: {"a": 2}. {"b": 3}"#), Ok(json!({"a": 2})));
        assert_eq!(read(schema.clone(), r#"{"a": true} or {"b": 1}"#), Err("'a' is required".to_owned()));
        assert_eq!(read(schema, "I will not."), Err("there is no JSON in it".to_owned()));
    }
}
