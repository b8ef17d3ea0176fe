//! Long numbers in arguments: text of the digits, where the schema requires a number.
//!
//! See [`agent_core::exact`]. The schema decides whether such text is a number, for the check of the
//! arguments and for the tool of another program, which receives a number again.

use std::{
    borrow::Cow,
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use agent_core::exact::{has_long_number, is_long_number};
use serde::Serialize;
use serde_json::{Number, Value};

use super::{
    shape::Shape,
    types::{Type, Types},
};

/// Prefix of a text that is written as a number. It is unknown outside of this process, so that no
/// argument can begin with it.
static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{f8ff}{:016x}:", RandomState::new().hash_one("number")));

/// Returns `value` with every long number rounded to a float, for validation; `None` if there is
/// none.
pub(super) fn rounded(schema: &Value, value: &Value) -> Option<Value> {
    let float = |digits: &str| digits.parse().ok().and_then(Number::from_f64).map(Value::Number);
    replaced(schema, value, float)
}

/// Returns `value` in the form in which [`to_json`] writes every long number as a number.
pub(crate) fn marked<'v>(schema: &Value, value: &'v Value) -> Cow<'v, Value> {
    let mark = |digits: &str| Some(format!("{}{digits}", *MARK).into());
    replaced(schema, value, mark).map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Writes JSON text, and the [marked] texts as numbers.
///
/// # Errors
/// If the value cannot be written as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    let quoted = format!("\"{}", *MARK);
    if !json.contains(&quoted) {
        return Ok(json);
    }
    let mut parts = json.split(&quoted);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_once('"').unwrap_or((part, ""));
        out.extend([digits, rest]);
    }
    Ok(out)
}

fn replaced(schema: &Value, value: &Value, replace: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    if !has_long_number(value) {
        return None;
    }
    let (shape, mut value) = (Shape::new(schema), value.clone());
    shape.replace_long_numbers(&mut value, &[shape.root()], &replace).then_some(value)
}

impl<'a> Shape<'a> {
    /// Replaces each long number at which `schemas` allow numbers and no text; returns true if there
    /// was one.
    fn replace_long_numbers(
        self,
        value: &mut Value,
        schemas: &[&'a Value],
        replace: &impl Fn(&str) -> Option<Value>,
    ) -> bool {
        if schemas.is_empty() {
            return false;
        }
        match value {
            Value::String(text) if is_long_number(text) => {
                let types = schemas.iter().fold(Types::NONE, |all, schema| all.union(self.types(schema)));
                let is_whole = !text.contains(['.', 'e', 'E']);
                let is_number = types.contains(Type::Number) || types.contains(Type::Integer) && is_whole;
                let new = replace(text).filter(|_| is_number && !types.contains(Type::String));
                new.map(|new| *value = new).is_some()
            }
            Value::Array(items) => items.iter_mut().enumerate().fold(false, |found, (at, item)| {
                self.replace_long_numbers(item, &self.of_item(schemas, at), replace) || found
            }),
            Value::Object(fields) => fields.iter_mut().fold(false, |found, (name, field)| {
                self.replace_long_numbers(field, &self.of_property(schemas, name), replace) || found
            }),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_decides_whether_digits_are_a_number() {
        let long = "12345678901234567890123";
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "integer"},
            "ids": {"type": "array", "items": {"$ref": "#/$defs/id"}},
            "amount": {"type": ["number", "null"]},
            "phone": {"type": "string"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "any": {},
        }, "$defs": {"id": {"type": "integer"}}});
        let args = json!({"id": long, "ids": [1, long], "amount": "0.12345678901234567890", "phone": long,
            "either": long, "any": long, "other": long});
        let written = to_json(&marked(&schema, &args)).expect("JSON");
        let expected = format!(
            r#"{{"amount":0.12345678901234567890,"any":"{long}","either":"{long}","id":{long},"ids":[1,{long}],"other":"{long}","phone":"{long}"}}"#
        );
        assert_eq!(written, expected);
        let rounded = rounded(&schema, &args).expect("there are long numbers");
        assert!(rounded["id"].is_f64() && rounded["ids"][1].is_f64() && rounded["phone"] == long, "{rounded}");
        let fraction = json!({"id": "12345678901234567.5"});
        assert_eq!(super::rounded(&schema, &fraction), None, "a fraction is no integer");
        assert!(matches!(marked(&schema, &json!({"id": 5})), Cow::Borrowed(_)));
    }
}
