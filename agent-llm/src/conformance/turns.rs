//! Checks that the provider's own JSON is sent back to it.

use std::sync::Arc;

use agent_core::{AssistantMessage, Block, ModelResponse};
use serde_json::{Value, json};

use super::{
    Answer, Samples,
    answers::{streamed, whole},
    drive::{complaints, encoded, kept, parsed, read_events, request_after},
    json::differences,
};
use crate::{Codec, RequestReader};

/// A field that no wire defines, and its value.
const UNKNOWN: (&str, &str) = ("x_unheard_of", "kept-4711");

/// An event that no wire defines.
const UNKNOWN_EVENT: &str = r#"{"type":"x_unheard_of","x_unheard_of":1}"#;

pub(super) fn go_back(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    samples.answers.iter().flat_map(|answer| complaints(goes_back(&**codec, answer), &answer.name)).collect()
}

fn goes_back(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    // The items of a list are sent back one after another, inside another list.
    let turn = answer.turn.trim();
    let bare = turn.strip_prefix('[').and_then(|turn| turn.strip_suffix(']')).unwrap_or(turn).trim();
    let body = encoded(codec, &request_after(&whole(codec, answer)?.message))?;
    if !body.contains(bare) {
        out.push(format!("the request does not hold the turn byte for byte: {body}"));
    }
    if !answer.events.is_empty() {
        let body = encoded(codec, &request_after(&streamed(codec, answer)?.0.message))?;
        if !holds(&parsed(&body)?, &parsed(turn)?) {
            out.push(format!("streamed, the request does not hold the turn: {body}"));
        }
    }
    Ok(out)
}

/// Returns true if `wanted` occurs anywhere in `json`; the items of a list may be part of a longer
/// one.
fn holds(json: &Value, wanted: &Value) -> bool {
    let is_here = match (json, wanted) {
        (Value::Array(items), Value::Array(wanted)) if !wanted.is_empty() => {
            items.windows(wanted.len()).any(|items| items.iter().zip(wanted).all(|(a, b)| differences(a, b).is_empty()))
        }
        (json, wanted) => differences(json, wanted).is_empty(),
    };
    is_here
        || match json {
            Value::Object(fields) => fields.values().any(|value| holds(value, wanted)),
            Value::Array(items) => items.iter().any(|item| holds(item, wanted)),
            _ => false,
        }
}

pub(super) fn survive_an_edit(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    samples.answers.iter().flat_map(|answer| complaints(survives_an_edit(&**codec, answer), &answer.name)).collect()
}

fn survives_an_edit(codec: &dyn RequestReader, answer: &Answer) -> Result<Vec<String>, String> {
    let mut message = whole(codec, answer)?.message;
    message.blocks_mut();
    let body = encoded(codec, &request_after(&message))?;
    let read = codec.decode_request(body.as_bytes()).map_err(|error| format!("not read again: {error:?}"))?;
    let again = read.messages.iter().find_map(|message| message.as_assistant().cloned());
    let again = again.ok_or_else(|| format!("the turn is not in the request: {body}"))?;
    Ok(differences(&words(&message), &words(&again)))
}

/// Returns a message's content, without its provider's JSON.
fn words(message: &AssistantMessage) -> Value {
    let word = |block: &Block| match block {
        Block::Text(text) => json!({"text": text.text}),
        Block::Reasoning(reasoning) => {
            json!({"reasoning": [reasoning.text, reasoning.signature, reasoning.encrypted]})
        }
        Block::ToolCall(call) => json!({"call": [call.id, call.name, call.arguments]}),
        Block::Image(media) | Block::Document(media) => json!({"media": media.source}),
        Block::Server(call) => json!({"server": [call.name, call.raw.to_value()]}),
        Block::Other(raw) => json!({"other": raw.to_value()}),
        other => json!(other),
    };
    message.blocks().iter().map(word).collect()
}

pub(super) fn keep_unknown_fields(codec: &Arc<dyn RequestReader>, samples: &Samples) -> Vec<String> {
    let kept = |answer: &Answer| {
        let mut out = keeps_unknown_fields(&**codec, answer)?;
        out.extend(takes_unknown_events(&**codec, answer)?);
        Ok(out)
    };
    samples.answers.iter().flat_map(|answer| complaints(kept(answer), &answer.name)).collect()
}

fn keeps_unknown_fields(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    let place = answer.place_of_turn().ok_or("the turn does not stand in the body")?;
    let body = parsed(&answer.whole)?;
    let mut out = Vec::new();
    for at in 0.. {
        let mut changed = body.clone();
        let Some(turn) = changed.pointer_mut(&place) else { break };
        if !add_to_nth(turn, &mut { at }) {
            break;
        }
        let response = codec.decode(changed.to_string().as_bytes());
        let response = response.map_err(|error| format!("a field in object {at} of the turn is an error: {error}"))?;
        if !has_unknown(&kept(&response)) {
            out.push(format!("a field in object {at} of the turn is not kept"));
        }
        if !encoded(codec, &request_after(&response.message))?.contains(UNKNOWN.1) {
            out.push(format!("a field in object {at} of the turn does not go back"));
        }
    }
    Ok(out)
}

/// Adds the unknown field to the `nth` object; returns false if there are fewer.
fn add_to_nth(json: &mut Value, nth: &mut usize) -> bool {
    match json {
        Value::Object(fields) => {
            if *nth == 0 {
                fields.insert(UNKNOWN.0.into(), UNKNOWN.1.into());
                return true;
            }
            *nth -= 1;
            fields.values_mut().any(|value| add_to_nth(value, nth))
        }
        Value::Array(items) => items.iter_mut().any(|item| add_to_nth(item, nth)),
        _ => false,
    }
}

fn has_unknown(json: &Value) -> bool {
    json.to_string().contains(UNKNOWN.1)
}

/// Checks that an unknown event causes no error and changes nothing.
fn takes_unknown_events(codec: &dyn Codec, answer: &Answer) -> Result<Vec<String>, String> {
    if answer.events.is_empty() {
        return Ok(Vec::new());
    }
    let (known, _): (ModelResponse, _) = streamed(codec, answer)?;
    let mut out = Vec::new();
    for at in 1..answer.events.len() {
        let mut events = answer.events.clone();
        events.insert(at, UNKNOWN_EVENT.into());
        match read_events(codec, &events) {
            Ok((response, _)) if response.message.blocks() == known.message.blocks() => {}
            Ok((response, _)) => out.push(format!("an unknown event at {at} changes the message: {response:?}")),
            Err(error) => out.push(format!("an unknown event at {at} is an error: {error:?}")),
        }
    }
    Ok(out)
}
