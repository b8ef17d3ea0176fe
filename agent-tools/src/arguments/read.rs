//! From the model's text to a JSON object.

use serde_json::{Map, Value, json};

use super::mend::mend;

/// Arguments as far as they can be read without a schema.
pub(super) struct Read {
    pub(super) value: Value,
    pub(super) notes: Vec<String>,
    /// False if the value only wraps something that is not an object.
    pub(super) is_object: bool,
}

/// How often JSON may be wrapped in a JSON string.
const MOST_WRAPPINGS: usize = 3;

/// How deep JSON may nest so that it can be read again.
pub(crate) const DEEPEST: usize = 127;

pub(super) fn read(text: &str) -> Read {
    let mut notes = Vec::new();
    let value = decode(text, &mut notes);
    let (value, is_object) = match value {
        Some(Value::Object(fields)) => (Value::Object(fields), true),
        Some(Value::Null) => (Value::Object(Map::new()), true),
        Some(other) if depth(&other) < DEEPEST => {
            notes.push("wrapped a value that is not an object".to_owned());
            (json!({"_": other}), false)
        }
        _ => {
            notes = vec!["wrapped text that is not JSON".to_owned()];
            (json!({"raw_arguments": text}), false)
        }
    };
    Read { value, notes, is_object }
}

/// The one value that the text is, mended where that is needed; nothing at all is null.
pub(crate) fn decode(text: &str, notes: &mut Vec<String>) -> Option<Value> {
    decode_wrapped(text, MOST_WRAPPINGS, notes)
}

fn decode_wrapped(text: &str, wrappings: usize, notes: &mut Vec<String>) -> Option<Value> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Some(Value::Null);
    }
    let value = json_or_mended(trimmed, notes).or_else(|| {
        let inside = fenced(trimmed)?;
        notes.push("removed a code fence".to_owned());
        json_or_mended(inside, notes)
    })?;
    // A string is taken for JSON only if what it holds can be nothing else.
    if let Value::String(inner) = &value
        && wrappings > 0
        && inner.trim_start().starts_with(['{', '[', '"'])
    {
        let before = notes.len();
        notes.push("decoded JSON inside a string".to_owned());
        let inner = decode_wrapped(inner, wrappings - 1, notes).filter(|v| !v.is_string());
        if inner.is_some() {
            return inner;
        }
        notes.truncate(before);
    }
    Some(value)
}

/// JSON, or what is nearly JSON and has one obvious reading.
pub(crate) fn json_or_mended(text: &str, notes: &mut Vec<String>) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let (mended, slips) = mend(text)?;
    let value = serde_json::from_str(&mended).ok()?;
    notes.extend(slips.into_iter().map(str::to_owned));
    Some(value)
}

/// How deep a value nests; 0 if it is neither a list nor an object.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// What stands between Markdown code fences.
fn fenced(text: &str) -> Option<&str> {
    let (_language, inside) = text.strip_prefix("```")?.split_once('\n')?;
    let inside = inside.trim_end();
    Some(inside.strip_suffix("```").unwrap_or(inside).trim())
}
