//! Minimal parser of AWS event streams: lengths are trusted, checksums are ignored.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// Returns the events of a stream, each with its payload under its type; wrapped bytes are
/// unwrapped. `None` if the bytes are not such a stream.
pub(super) fn events(mut bytes: &[u8]) -> Option<Vec<Value>> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let length = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (all, headers) = (length(0)?, length(4)?);
        let frame = bytes.get(..all)?;
        let named = header_texts(frame.get(12..12 + headers)?)?;
        let payload: Value = serde_json::from_slice(frame.get(12 + headers..all.checked_sub(4)?)?).ok()?;
        let kind = |name: &str| named.iter().find(|(known, _)| known == name).map(|(_, kind)| kind.clone());
        events.push(match (kind(":exception-type"), kind(":event-type").unwrap_or_default()) {
            (Some(exception), _) => json!({"error": {"type": exception, "message": payload["message"]}}),
            (None, chunk) if chunk == "chunk" => {
                serde_json::from_slice(&BASE64_STANDARD.decode(payload["bytes"].as_str()?).ok()?).ok()?
            }
            (None, kind) => Value::Object(Map::from_iter([(kind, payload)])),
        });
        bytes = &bytes[all..];
    }
    Some(events)
}

/// Returns the text headers; no others occur.
fn header_texts(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let rest = rest.strip_prefix(&[7])?; // 7 is the type number of text
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        headers.push((String::from_utf8(name.to_vec()).ok()?, String::from_utf8(value.to_vec()).ok()?));
        bytes = rest;
    }
    Some(headers)
}
