//! Conversion of values between JSON and a program.

use monty_types::MontyObject;
use num_bigint::BigInt;
use serde_json::{Map, Number, Value};

/// Maximum nesting depth of a call's arguments: JSON parsers accept no more than twice that.
const DEEPEST: usize = 64;

/// Converts a JSON value to a program's value.
pub(super) fn to_python(value: &Value) -> MontyObject {
    match value {
        Value::Null => MontyObject::None,
        Value::Bool(value) => MontyObject::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(small), _) => MontyObject::Int(small),
            (None, Some(large)) => MontyObject::BigInt(BigInt::from(large)),
            (None, None) => MontyObject::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => MontyObject::String(text.clone()),
        Value::Array(items) => MontyObject::List(items.iter().map(to_python).collect()),
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| (MontyObject::String(name.clone()), to_python(value)));
            MontyObject::dict(pairs.collect::<Vec<_>>())
        }
    }
}

/// Converts a program's value to JSON.
///
/// # Errors
/// The part of the value that JSON cannot represent.
pub(super) fn to_json(value: &MontyObject) -> Result<Value, String> {
    nested(value, 0)
}

fn nested(value: &MontyObject, depth: usize) -> Result<Value, String> {
    if depth > DEEPEST {
        return Err("is nested too deeply".into());
    }
    let items = |items: &[MontyObject]| {
        items.iter().map(|item| nested(item, depth + 1)).collect::<Result<_, _>>().map(Value::Array)
    };
    match value {
        MontyObject::None => Ok(Value::Null),
        MontyObject::Bool(value) => Ok(Value::Bool(*value)),
        MontyObject::Int(value) => Ok((*value).into()),
        MontyObject::BigInt(value) => match u64::try_from(value) {
            Ok(value) => Ok(value.into()),
            Err(_) => Ok(value.to_string().into()), // as `agent_core::exact` has it
        },
        MontyObject::Float(value) => {
            Number::from_f64(*value).map(Value::Number).ok_or_else(|| format!("has the number {value}"))
        }
        MontyObject::String(text) | MontyObject::Path(text) => Ok(Value::String(text.clone())),
        MontyObject::List(list) | MontyObject::Tuple(list) | MontyObject::Set(list) | MontyObject::FrozenSet(list) => {
            items(list)
        }
        MontyObject::NamedTuple { field_names, values, .. } => {
            let fields = field_names.iter().zip(values);
            let fields = fields.map(|(name, value)| Ok((name.clone(), nested(value, depth + 1)?)));
            fields.collect::<Result<Map<_, _>, String>>().map(Value::Object)
        }
        MontyObject::Dict(pairs) => {
            let mut fields = Map::new();
            for (key, value) in pairs {
                let name = match key {
                    MontyObject::String(name) => name.clone(),
                    MontyObject::Int(number) => number.to_string(),
                    other => return Err(format!("has a key of the type {}", other.type_name())),
                };
                fields.insert(name, nested(value, depth + 1)?);
            }
            Ok(Value::Object(fields))
        }
        other => Err(format!("has a value of the type {}", other.type_name())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,5}", inner, 0..5).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_goes_into_a_program_comes_out_of_it_the_same(value in any_json()) {
            prop_assert_eq!(to_json(&to_python(&value)), Ok(value));
        }
    }

    #[test]
    fn an_integer_of_more_than_64_bits_is_text_with_its_digits() {
        let large = MontyObject::BigInt(BigInt::from(u64::MAX) + 1);
        assert_eq!(to_json(&large), Ok(json!("18446744073709551616")));
    }

    #[test]
    fn what_json_does_not_have_is_refused_with_what_it_is() {
        let deep = (0..100).fold(MontyObject::None, |inner, _| MontyObject::List(vec![inner]));
        let key = MontyObject::dict(vec![(MontyObject::None, MontyObject::None)]);
        for (value, wanted) in [
            (MontyObject::Float(f64::NAN), "has the number NaN"),
            (MontyObject::Bytes(vec![1]), "has a value of the type bytes"),
            (key, "has a key of the type NoneType"),
            (deep, "is nested too deeply"),
        ] {
            assert_eq!(to_json(&value), Err(wanted.to_owned()));
        }
    }
}
