//! Encoding of requests, and of all messages that are not the model's.

use std::iter::from_fn;

use agent_core::{
    History, Media, Message, ModelRequest, Part, ToolMessage,
    message::{MediaSource, Raw},
    tool::WireKey,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{MessageStyle, settings::Settings, tools::write_tools, turn};
use crate::wire::{
    alternating_roles::asked,
    body::Draft,
    content::{Address, joined},
    json::{Json, write, write_with},
    lenient::kind,
    openai_chat::{
        messages::{Said, Spoken},
        parts::{own_media, own_text},
    },
};

/// Writes the request's body to `out`.
pub(super) fn encode(req: &ModelRequest, manner: &MessageStyle, key: WireKey, out: &mut Draft) {
    let ModelRequest { system, tools: specs, params, stream, messages: history, .. } = req;
    let settings = Settings { system: system.as_ref(), specs, params, stream: *stream, manner };
    write_with(&settings.fields(), &params.extra, out);
    out.pop(); // the closing brace
    if !params.extra.contains_key("input") && !history.is_empty() {
        out.extend_from_slice(b",\"input\":");
        match plain_text(history, manner) {
            Some(text) => write(&text, out),
            None => {
                out.push(b'[');
                // Each item has a comma after it, so that a message's encoding does not depend on
                // the next.
                out.messages(history, |at, message, out| write_message(manner, history, at, message, out));
                out.pop_if(|last| *last == b',');
                out.push(b']');
            }
        }
    }
    if !specs.is_empty() && !params.extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&specs.written(key, |specs| write_tools(specs, manner)));
    }
    out.push(b'}');
}

/// Returns the input as a plain text, if it was decoded from one.
fn plain_text<'a>(history: &'a History, manner: &MessageStyle) -> Option<&'a RawValue> {
    match history.get(0)? {
        Message::User(only) if history.len() == 1 => manner.own(only.raw()).filter(|own| is_text(own)),
        _ => None,
    }
}

fn is_text(json: &RawValue) -> bool {
    json.get().starts_with('"')
}

/// Writes an item, followed by a comma.
pub(super) fn write_item(item: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    write(&item, out);
    out.push(b',');
}

/// Writes `message`, at index `at` in the history, as items, each followed by a comma.
fn write_message(manner: &MessageStyle, history: &History, at: usize, message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::System(m) => write_spoken(manner, manner.system_role(), m.parts(), m.raw(), out),
        Message::User(m) => write_spoken(manner, "user", m.parts(), m.raw(), out),
        Message::Assistant(m) => turn::write(manner, m, out),
        Message::Tool(m) => write_result(manner, history, at, m, out),
    }
}

/// Parts that are separate items split the message in two.
fn write_spoken(manner: &MessageStyle, role: &str, parts: &[Part], raw: Option<&Raw>, out: &mut Vec<u8>) {
    if let Some(own) = manner.own(raw).filter(|own| !is_text(own)) {
        return write_item(own, out);
    }
    if let Some(content) = text_alone(manner, parts) {
        return write_item(&Spoken::new(role, content), out);
    }
    let mut parts = parts.iter().filter_map(|part| part_json(manner, part)).peekable();
    while parts.peek().is_some() {
        let content: Vec<_> = from_fn(|| parts.next_if(|part| !is_item(part))).collect();
        if !content.is_empty() {
            write_item(&Spoken::new(role, Said::Parts(content)), out);
        }
        while let Some(item) = parts.next_if(is_item) {
            write_item(&item, out);
        }
    }
}

/// Writes a result of the kind that its call requires, according to the provider's JSON of the
/// call.
fn write_result(manner: &MessageStyle, history: &History, at: usize, message: &ToolMessage, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct ToolResult<'a> {
        r#type: &'static str,
        call_id: &'a str,
        output: Said<'a>,
    }

    if let Some(own) = manner.own(message.raw()) {
        return write_item(own, out);
    }
    let (call_id, parts) = (message.call_id(), message.parts());
    let call = asked(history, at).and_then(|turn| turn.calls().find(|call| *call.id == *call_id));
    let called = call.and_then(|call| manner.own(call.raw.as_ref())).map(kind).unwrap_or_default();
    let screen = parts.iter().rev().find_map(|part| if let Part::Image(image) = part { Some(image) } else { None });
    if let ("computer_call", Some(screen)) = (&*called, screen) {
        let output = json!({"type": "computer_screenshot", "image_url": Address::of(screen, "image/png")});
        return write_item(&json!({"type": "computer_call_output", "call_id": call_id, "output": output}), out);
    }
    let r#type = if called == "custom_tool_call" { "custom_tool_call_output" } else { "function_call_output" };
    let output = text_alone(manner, parts).unwrap_or_else(|| {
        let parts = parts.iter().filter_map(|part| part_json(manner, part));
        Said::Parts(parts.filter(|part| !is_item(part)).collect())
    });
    write_item(&ToolResult { r#type, call_id, output }, out);
}

/// Returns the parts as one text, unless a part has other fields to encode.
fn text_alone<'a>(manner: &MessageStyle, parts: &'a [Part]) -> Option<Said<'a>> {
    let is_plain = |part: &Part| matches!(part, Part::Text(text) if manner.own(text.raw.as_ref()).is_none());
    parts.iter().all(is_plain).then(|| Said::Text(joined(parts)))
}

/// Returns true for a separate item, as opposed to a content part.
fn is_item(part: &Json<'_>) -> bool {
    matches!(part, Json::Own(own) if !is_part(own))
}

/// Encodes the part; `None` for another provider's content that means nothing here. The result may
/// be an item, which is written alongside the message.
pub(super) fn part_json<'a>(manner: &MessageStyle, part: &'a Part) -> Option<Json<'a>> {
    let own = match part {
        Part::Text(text) => own_text(manner, text),
        Part::Image(media) | Part::Document(media) => own_media(manner, media),
        Part::Other(raw) => manner.own(Some(raw)),
        _ => None,
    };
    own.map(Json::Own).or_else(|| {
        Some(Json::Made(match part {
            Part::Text(text) => json!({"type": "input_text", "text": text.text}),
            Part::Image(media) => image(media),
            Part::Document(media) => document(media),
            _ => return None,
        }))
    })
}

fn image(media: &Media) -> Value {
    match &media.source {
        MediaSource::File(id) => json!({"type": "input_image", "detail": "auto", "file_id": id}),
        _ => json!({"type": "input_image", "detail": "auto", "image_url": Address::of(media, "image/png")}),
    }
}

fn document(media: &Media) -> Value {
    match &media.source {
        MediaSource::File(id) => json!({"type": "input_file", "file_id": id}),
        MediaSource::Url(url) => json!({"type": "input_file", "file_url": url}),
        _ => {
            let (name, data) = (media.name.as_deref().unwrap_or("document.pdf"), Address::of(media, "application/pdf"));
            json!({"type": "input_file", "filename": name, "file_data": data})
        }
    }
}

/// Returns true if the JSON is a content part, false for a separate item.
pub(super) fn is_part(json: &RawValue) -> bool {
    let kind = kind(json);
    kind.starts_with("input_") || kind.starts_with("output_") || matches!(&*kind, "text" | "refusal" | "summary_text")
}
