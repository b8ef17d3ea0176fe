//! Parses the model's text to a JSON object.

use agent_core::exact;
use serde_json::{Map, Value, json};

use super::mend::mend;

/// Arguments as parsed without a schema.
pub(super) struct Read {
    pub(super) value: Value,
    pub(super) repairs: Repairs,
    /// False if the object only wraps a value that is not an object.
    pub(super) is_object: bool,
}

/// Repairs that were needed to parse a text.
#[derive(Default)]
pub(crate) struct Repairs {
    /// Names of the repairs, for a report.
    pub(super) notes: Vec<String>,
    /// True if a string or brackets were open at the end of the text.
    pub(super) is_truncated: bool,
}

/// Maximum number of times that JSON may be wrapped in a JSON string.
const MOST_WRAPPINGS: usize = 3;

/// Maximum nesting of JSON that can still be parsed again.
pub(crate) const DEEPEST: usize = 127;

pub(super) fn read(text: &str) -> Read {
    let mut repairs = Repairs::default();
    let value = decode(text, &mut repairs);
    let (value, is_object) = match value {
        Some(Value::Object(fields)) => (Value::Object(fields), true),
        Some(Value::Null) => (Value::Object(Map::new()), true),
        // Some servers send this for a call without arguments.
        Some(Value::Array(items)) if items.is_empty() && !repairs.is_truncated => (Value::Object(Map::new()), true),
        Some(other) if depth(&other) < DEEPEST => {
            repairs.notes.push("wrapped a value that is not an object".to_owned());
            (json!({"_": other}), false)
        }
        _ => {
            repairs.notes = vec!["wrapped text that is not JSON".to_owned()];
            (json!({"raw_arguments": text}), false)
        }
    };
    Read { value, repairs, is_object }
}

/// Parses a text as one value, with repairs where needed; empty text is null.
pub(crate) fn decode(text: &str, repairs: &mut Repairs) -> Option<Value> {
    decode_wrapped(text, MOST_WRAPPINGS, repairs)
}

fn decode_wrapped(text: &str, wrappings: usize, repairs: &mut Repairs) -> Option<Value> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Some(Value::Null);
    }
    let value = json_or_mended(trimmed, repairs).or_else(|| {
        let inside = fenced(trimmed)?;
        repairs.notes.push("removed a code fence".to_owned());
        json_or_mended(inside, repairs)
    })?;
    // A string is parsed as JSON only if its content cannot be anything else.
    if let Value::String(inner) = &value
        && wrappings > 0
        && inner.trim_start().starts_with(['{', '[', '"'])
    {
        let before = repairs.notes.len();
        repairs.notes.push("decoded JSON inside a string".to_owned());
        let inner = decode_wrapped(inner, wrappings - 1, repairs).filter(|v| !v.is_string());
        if inner.is_some() {
            return inner;
        }
        repairs.notes.truncate(before);
    }
    Some(value)
}

/// Parses JSON, or text that is nearly JSON and has one obvious reading.
pub(crate) fn json_or_mended(text: &str, repairs: &mut Repairs) -> Option<Value> {
    if let Ok(value) = exact::from_str(text) {
        return Some(value);
    }
    let mended = mend(text)?;
    repairs.is_truncated |= mended.is_truncated;
    let value = exact::from_str(&mended.json).ok()?;
    repairs.notes.extend(mended.slips.into_iter().map(str::to_owned));
    Some(value)
}

/// Returns the nesting depth of a value; 0 if it is neither a list nor an object.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the text between Markdown code fences.
fn fenced(text: &str) -> Option<&str> {
    let (_language, inside) = text.strip_prefix("```")?.split_once('\n')?;
    let inside = inside.trim_end();
    Some(inside.strip_suffix("```").unwrap_or(inside).trim())
}
