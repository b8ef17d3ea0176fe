//! References in arguments to earlier results.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Results by the names used in references: `call-1` of this step, `step-1/call-1` of an earlier
/// one. `None` for a failed call.
pub(crate) type Known = BTreeMap<String, Option<Value>>;

const REF: &str = "$ref";

/// Returns the names of all results that a value refers to.
pub(crate) fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some((name, _)) => vec![name],
            None => fields.values().flat_map(references).collect(),
        },
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// Replaces references by results.
///
/// # Errors
/// A description of the missing result, or of the missing part of a result.
pub(crate) fn resolve(value: &Value, known: &Known) -> Result<Value, String> {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some((name, pointer)) => {
                let result = known.get(name).ok_or_else(|| format!("there is no result '{name}'"))?;
                let result = result.as_ref().ok_or_else(|| format!("'{name}' has no result: it failed"))?;
                let part = result.pointer(pointer);
                part.cloned().ok_or_else(|| format!("the result of '{name}' has no part '{pointer}'"))
            }
            None => fields
                .iter()
                .map(|(k, v)| Ok((k.clone(), resolve(v, known)?)))
                .collect::<Result<_, _>>()
                .map(Value::Object),
        },
        Value::Array(items) => {
            items.iter().map(|item| resolve(item, known)).collect::<Result<_, _>>().map(Value::Array)
        }
        other => Ok(other.clone()),
    }
}

/// Returns the name and the pointer of an object that is a reference.
fn reference(fields: &Map<String, Value>) -> Option<(&str, &str)> {
    let target = fields.get(REF).filter(|_| fields.len() == 1)?.as_str()?;
    Some(target.split_once('#').unwrap_or((target, "")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_become_results_or_parts_of_them() {
        let known = Known::from([
            ("call-1".to_owned(), Some(json!({"rows": [{"id": 7}]}))),
            ("step-1/call-1".to_owned(), Some(json!("text"))),
            ("call-2".to_owned(), None),
        ]);
        let arguments = json!({"a": {"$ref": "call-1#/rows/0/id"}, "b": [{"$ref": "step-1/call-1"}], "c": 1});
        assert_eq!(references(&arguments), ["call-1", "step-1/call-1"]);
        assert_eq!(resolve(&arguments, &known), Ok(json!({"a": 7, "b": ["text"], "c": 1})));
        for (target, problem) in [
            ("call-1#/rows/1", "the result of 'call-1' has no part '/rows/1'"),
            ("call-2", "'call-2' has no result: it failed"),
            ("call-3", "there is no result 'call-3'"),
        ] {
            assert_eq!(resolve(&json!({"x": {"$ref": target}}), &known), Err(problem.to_owned()));
        }
    }
}
