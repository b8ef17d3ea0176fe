//! Binary form of AG-UI events: length-prefixed Protocol Buffers messages, with four bytes of
//! length.
//!
//! Events are encoded from their JSON by a table that maps members to fields, so that the JSON form
//! is the only definition of an event.

mod fields;

use bytes::{BufMut, Bytes};
use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::{Map, Value};

use self::fields::{BASE, EVENTS, OPERATIONS};
use super::AgUiEvent;

/// Media type of the binary form, which clients request by `Accept`.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.ag-ui.event+proto";

/// Field of a message: number, JSON pointer of the value, and type. Values that are missing or of
/// another type are left out.
#[derive(Clone, Copy)]
struct Field(u32, &'static str, Kind);

/// Type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Texts,
    Whole,
    Flag,
    /// Any JSON, as `google.protobuf.Value`.
    Any,
    /// An object, as `google.protobuf.Struct`.
    Object,
    /// Operation of a JSON patch.
    Operation,
    Message(&'static [Field]),
    Messages(&'static [Field]),
    /// One of several messages, selected by the member `type`.
    Arm(&'static [Arm]),
    Arms(&'static [Arm]),
}

/// One of several messages: its `type`, the number of its field, and its own fields.
struct Arm(&'static str, u32, &'static [Field]);

/// Encodes an event as a frame; none if the binary form does not define it.
pub(super) fn frame(event: &AgUiEvent) -> Option<Bytes> {
    let json = serde_json::to_value(event).expect("events have string keys");
    let written = written(&json)?;
    let mut framed = Vec::with_capacity(4 + written.len());
    framed.extend_from_slice(&u32::try_from(written.len()).ok()?.to_be_bytes());
    framed.extend(written);
    Some(framed.into())
}

/// Encodes an event as a message.
fn written(json: &Value) -> Option<Vec<u8>> {
    let number = EVENTS.iter().position(|Arm(kind, ..)| json["type"] == **kind)?;
    let Arm(_, field, fields) = &EVENTS[number];
    let mut event = Vec::new();
    within(&mut event, *field, |inner| {
        within(inner, BASE, |base| {
            if number > 0 {
                varint(base, 1, number as u64);
            }
        });
        message(inner, fields, json);
    });
    Some(event)
}

fn message(out: &mut Vec<u8>, fields: &[Field], json: &Value) {
    for Field(number, place, kind) in fields {
        if let Some(value) = json.pointer(place) {
            field(out, *number, *kind, value);
        }
    }
}

fn field(out: &mut Vec<u8>, number: u32, kind: Kind, value: &Value) {
    match (kind, value) {
        (Kind::Text, Value::String(text)) => bytes(out, number, text.as_bytes()),
        (Kind::Texts | Kind::Messages(_) | Kind::Arms(_), Value::Array(all)) => {
            let each = match kind {
                Kind::Messages(fields) => Kind::Message(fields),
                Kind::Arms(arms) => Kind::Arm(arms),
                _ => Kind::Text,
            };
            all.iter().for_each(|one| field(out, number, each, one));
        }
        (Kind::Whole, Value::Number(whole)) => varint(out, number, whole.as_u64().unwrap_or_default()),
        (Kind::Flag, Value::Bool(flag)) => varint(out, number, u64::from(*flag)),
        (Kind::Any, value) => within(out, number, |inner| any(inner, value)),
        (Kind::Object, Value::Object(object)) => within(out, number, |inner| structure(inner, object)),
        (Kind::Operation, Value::String(word)) => {
            let at = OPERATIONS.iter().position(|known| known == word).unwrap_or_default();
            if at > 0 {
                varint(out, number, at as u64);
            }
        }
        (Kind::Message(fields), value) => within(out, number, |inner| message(inner, fields, value)),
        (Kind::Arm(arms), value) => {
            if let Some(Arm(_, arm, fields)) = arms.iter().find(|Arm(kind, ..)| value["type"] == **kind) {
                within(out, number, |inner| within(inner, *arm, |inner| message(inner, fields, value)));
            }
        }
        _ => {}
    }
}

/// Encodes a `google.protobuf.Value`.
fn any(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => varint(out, 1, 0),
        Value::Number(number) => {
            encode_key(2, WireType::SixtyFourBit, out);
            out.put_f64_le(number.as_f64().unwrap_or_default());
        }
        Value::String(text) => bytes(out, 3, text.as_bytes()),
        Value::Bool(flag) => varint(out, 4, u64::from(*flag)),
        Value::Object(object) => within(out, 5, |inner| structure(inner, object)),
        Value::Array(all) => {
            within(out, 6, |inner| all.iter().for_each(|one| within(inner, 1, |inner| any(inner, one))));
        }
    }
}

/// Encodes a `google.protobuf.Struct`.
fn structure(out: &mut Vec<u8>, object: &Map<String, Value>) {
    for (key, value) in object {
        within(out, 1, |entry| {
            bytes(entry, 1, key.as_bytes());
            within(entry, 2, |inner| any(inner, value));
        });
    }
}

fn within(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    bytes(out, number, &inner);
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(content.len() as u64, out);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ag_ui::AgUi;

    /// Compares with the bytes that the protocol's own encoder produces for these events.
    #[test]
    fn events_are_as_the_protocols_own_encoder_writes_them() {
        let all: Vec<(Value, String)> = serde_json::from_str(include_str!("encoded.json")).expect("a list");
        assert!(all.len() > 20);
        for (json, hex) in all {
            let event = super::written(&json).expect("known");
            let ours: String = event.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(ours, hex, "{json}");
        }
    }

    #[test]
    fn a_frame_says_how_long_it_is() {
        let event = AgUi::StepStarted { step_name: "a".into() }.of_root();
        let frame = frame(&event).expect("known");
        let length = u32::from_be_bytes(frame[..4].try_into().expect("four bytes"));
        assert_eq!(length as usize, frame.len() - 4);
    }
}
