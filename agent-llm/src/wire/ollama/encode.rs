//! Encoding of requests.

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, Media, Message, ModelRequest, Part, SystemMessage, ToolCall, ToolChoice, ToolMessage,
    ToolSpec,
    message::{MediaSource, Raw},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{OllamaCodec, fold::Fold, settings::Settings};
use crate::wire::{
    content::{EMPTY, Input, joined},
    json::{write, write_with},
    openai_chat::{encode::Words, messages::MessageStyle},
};

impl Words for OllamaCodec {
    fn manner(&self) -> &MessageStyle {
        &self.manner
    }

    /// Tools that must not be called are not offered.
    fn offers(&self, req: &ModelRequest, spec: &ToolSpec) -> bool {
        match &req.params.tool_choice {
            Some(ToolChoice::None) => false,
            Some(ToolChoice::Tool(name)) => *name == spec.name,
            _ => true,
        }
    }

    fn write_settings(&self, req: &ModelRequest, _has_tools: bool, out: &mut Vec<u8>) {
        let settings = Settings::new(self.manner.origin.model(), &req.params, &self.profile, req.stream);
        write_with(&settings, &req.params.extra, out);
    }

    fn write_system(&self, system: &SystemMessage, out: &mut Vec<u8>) {
        self.write_spoken(&Spoken::new("system", system.parts(), None), system.raw(), out);
    }

    fn write_message(&self, _req: &ModelRequest, _at: usize, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::System(message) => self.write_system(message, out),
            Message::User(message) => {
                self.write_spoken(&Spoken::new("user", message.parts(), None), message.raw(), out);
            }
            Message::Tool(message) => {
                self.write_spoken(&Spoken::new("tool", message.parts(), Some(message)), message.raw(), out);
            }
            Message::Assistant(message) => write_turn(&self.manner, message, out),
        }
        out.push(b',');
    }
}

impl OllamaCodec {
    fn write_spoken(&self, spoken: &Spoken<'_>, raw: Option<&Raw>, out: &mut Vec<u8>) {
        match self.manner.own(raw) {
            Some(own) => out.extend_from_slice(own.get().as_bytes()),
            None => write(spoken, out),
        }
    }
}

/// A message that is not the model's.
#[derive(Serialize)]
struct Spoken<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Spoken<'a> {
    /// Creates a message. An empty one gets a placeholder, unless it is a tool `result`.
    fn new(role: &'static str, parts: &'a [Part], result: Option<&'a ToolMessage>) -> Self {
        let (mut content, images) = (joined(parts), parts.iter().filter_map(image).collect::<Vec<_>>());
        if result.is_none() && content.trim().is_empty() && images.is_empty() {
            content = Cow::Borrowed(EMPTY);
        }
        Self {
            role,
            content,
            images,
            tool_name: result.map(ToolMessage::name),
            tool_call_id: result.map(ToolMessage::call_id),
        }
    }
}

/// Returns the bytes of an inline image.
pub(super) fn image(part: &Part) -> Option<&str> {
    let Part::Image(Media { source: MediaSource::Base64(data), .. }) = part else { return None };
    Some(data)
}

/// A turn of the model.
#[derive(Serialize)]
pub(super) struct Turn<'a> {
    /// All other fields, including the role.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
    pub(super) content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<CallJson<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum CallJson<'a> {
    Raw(&'a RawValue),
    Call { id: &'a str, function: Function<'a> },
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    name: &'a str,
    arguments: Input<'a>,
}

/// Encodes a turn: unchanged, if it is this provider's and unedited; else from its blocks, without
/// the reasoning of another provider's model.
fn write_turn(manner: &MessageStyle, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = manner.own(message.raw());
    if let Some(own) = own.filter(|_| !message.is_edited()) {
        return out.extend_from_slice(own.get().as_bytes());
    }
    let mut was = Fold::new(manner.origin.clone(), false);
    // JSON that cannot be decoded has no fields to keep.
    let _ = own.map(|own| was.push(own, "", &mut Vec::new()));
    let (mut texts, mut thoughts, mut tool_calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in message.blocks() {
        match block {
            Block::Text(text) => texts.push(text.text.as_str()),
            Block::Image(_) => texts.push("[image]"),
            Block::Document(_) => texts.push("[document]"),
            Block::Reasoning(thought) if own.is_some() => thoughts.push(thought.text.as_str()),
            Block::ToolCall(call) => tool_calls.push(call_json(manner, call)),
            _ => {}
        }
    }
    let (content, thinking) = (texts.join("\n").into(), thoughts.join("\n").into());
    write(&Turn { rest: was.rest(), content, thinking, tool_calls }, out);
}

/// Returns the provider's own JSON of a call, unless it was edited.
fn call_json<'a>(manner: &MessageStyle, call: &'a ToolCall) -> CallJson<'a> {
    let still_says = |own: &&RawValue| {
        super::fold::call(own, &manner.origin, || call.id.to_string())
            .is_ok_and(|was| (&was.id, &was.name, &was.arguments) == (&call.id, &call.name, &call.arguments))
    };
    match manner.own(call.raw.as_ref()).filter(still_says) {
        Some(own) => CallJson::Raw(own),
        None => CallJson::Call {
            id: &call.id,
            function: Function { name: &call.name, arguments: Input::new(&call.arguments) },
        },
    }
}
