//! Comparison of JSON: keys in any order, numbers by value, texts byte for byte, lists in order.

use std::collections::HashSet;

use serde_json::{Number, Value};

/// Maximum length of a value in a difference, in characters.
const SHOWN: usize = 120;

/// Returns the differences between `got` and `wanted`: JSON Pointers with both values.
///
/// ```
/// use agent_llm::conformance::json::differences;
/// use serde_json::json;
///
/// assert_eq!(differences(&json!({"a": [1.0]}), &json!({"a": [1]})), Vec::<String>::new());
/// assert_eq!(differences(&json!({"a": [1]}), &json!({"a": [2]})), ["/a/0: 2 is not 1"]);
/// ```
pub fn differences(wanted: &Value, got: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare("", wanted, got, &mut out);
    out
}

fn compare(path: &str, wanted: &Value, got: &Value, out: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for (name, value) in wanted {
                match got.get(name) {
                    Some(other) => compare(&format!("{path}/{name}"), value, other, out),
                    None => out.push(format!("{path}/{name}: {} is missing", shown(value))),
                }
            }
            let added = got.iter().filter(|(name, _)| !wanted.contains_key(*name));
            out.extend(added.map(|(name, value)| format!("{path}/{name}: {} was added", shown(value))));
        }
        (Value::Array(wanted), Value::Array(got)) => {
            let pairs = wanted.iter().zip(got).enumerate();
            pairs.for_each(|(at, (wanted, got))| compare(&format!("{path}/{at}"), wanted, got, out));
            if wanted.len() != got.len() {
                out.push(format!("{path}: {} items, not {}", got.len(), wanted.len()));
            }
        }
        (wanted, got) if Leaf::of(wanted).is_some_and(|leaf| Some(leaf) == Leaf::of(got)) => {}
        (wanted, got) => out.push(format!("{path}: {} is not {}", shown(got), shown(wanted))),
    }
}

/// Returns the fields of the request `sent` that the request `back` does not preserve: `back` must
/// have the same fields with equal values, lists in the same order, and no others. At the top level
/// alone, a field that is `null`, `"stream": false` and an empty list of tools may be omitted, since
/// they are defaults.
///
/// ```
/// use agent_llm::conformance::json::not_kept;
/// use serde_json::json;
///
/// let sent = json!({"messages": [], "stop": null, "stream": false, "seed": 7});
/// assert_eq!(not_kept(&sent, &json!({"messages": []})), ["/seed: 7 is missing"]);
/// ```
pub fn not_kept(sent: &Value, back: &Value) -> Vec<String> {
    differences(&said(sent), &said(back))
}

/// Returns the request without fields that equal their defaults.
fn said(request: &Value) -> Value {
    let mut request = request.clone();
    if let Some(fields) = request.as_object_mut() {
        let says_nothing = |name: &str, value: &Value| match name {
            "stream" => value.is_null() || *value == Value::Bool(false),
            "tools" => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
            _ => value.is_null(),
        };
        fields.retain(|name, value| !says_nothing(name, value));
    }
    request
}

/// Returns the texts and numbers in `wanted` that occur nowhere in `got`, with their paths. Empty
/// texts are ignored.
pub fn lost(wanted: &Value, got: &Value) -> Vec<String> {
    let mut known = HashSet::new();
    leaves("", got, &mut |_, leaf| {
        known.extend(Leaf::of(leaf));
    });
    let mut out = Vec::new();
    leaves("", wanted, &mut |path, leaf| {
        if leaf != "" && Leaf::of(leaf).is_some_and(|leaf| !known.contains(&leaf)) {
            out.push(format!("{path}: {} is lost", shown(leaf)));
        }
    });
    out
}

fn leaves<'a>(path: &str, value: &'a Value, take: &mut impl FnMut(&str, &'a Value)) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves(&format!("{path}/{name}"), value, take));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| leaves(&format!("{path}/{at}"), item, take));
        }
        Value::String(_) | Value::Number(_) => take(path, value),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A scalar value, in a form that is equal for equal values.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Leaf<'a> {
    Null,
    Bool(bool),
    Text(&'a str),
    Whole(i128),
    Fraction(u64),
}

impl<'a> Leaf<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::String(text) => Self::Text(text),
            Value::Number(number) => Self::number(number),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    /// `1`, `1.0` and `1e0` are the same number.
    fn number(number: &Number) -> Self {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        match (whole, number.as_f64()) {
            (Some(whole), _) => Self::Whole(whole),
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 9e15 => Self::Whole(float as i128),
            (None, float) => Self::Fraction(float.unwrap_or(f64::NAN).to_bits()),
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

/// Returns the text at `pointer`; empty if it does not exist.
pub fn text<'a>(json: &'a Value, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of the list at `pointer`; empty if there is no list.
pub fn items<'a>(json: &'a Value, pointer: &str) -> &'a [Value] {
    json.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_texts_by_their_bytes() {
        let one = serde_json::from_str(r#"{"b": [1.0, 0.1], "a": "é"}"#).expect("JSON");
        let same = serde_json::from_str(r#"{"a": "\u00e9", "b": [1, 1e-1]}"#).expect("JSON");
        assert_eq!(differences(&one, &same), Vec::<String>::new());
        assert_eq!(differences(&json!({"a": "é"}), &json!({"a": "e\u{301}"})).len(), 1, "another spelling");
        assert_eq!(differences(&json!(u64::MAX), &json!(u64::MAX - 1)).len(), 1);
    }

    #[test]
    fn every_difference_is_named_by_its_path() {
        let found = differences(&json!({"a": [1, {"b": null}], "c": 1}), &json!({"a": [1, {"b": []}, 3], "d": {}}));
        let wanted = ["/a/1/b: [] is not null", "/a: 3 items, not 2", "/c: 1 is missing", "/d: {} was added"];
        assert_eq!(found, wanted);
        assert_eq!(differences(&json!([]), &json!({})).len(), 1);
    }

    #[test]
    fn a_leaf_that_stands_nowhere_is_lost() {
        let kept = json!({"elsewhere": [{"x": "said"}, 2.0]});
        assert_eq!(lost(&json!({"a": ["said", 2, "", true, null]}), &kept), Vec::<String>::new());
        assert_eq!(lost(&json!({"a": ["sai"]}), &kept), [r#"/a/0: "sai" is lost"#]);
    }
}
