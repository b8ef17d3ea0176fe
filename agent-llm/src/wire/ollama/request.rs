//! Decoding of requests.

use std::{collections::VecDeque, sync::Arc};

use agent_core::{Block, Media, Message, Part, Result, SystemMessage, ToolMessage, UserMessage, message::Raw};
use serde_json::{json, value::RawValue};

use super::{
    OllamaProfile,
    fold::Fold,
    settings::{Settings, params},
};
use crate::{
    ParsedRequest,
    wire::{
        lenient::Str,
        open_struct::open_struct,
        openai_chat::{messages::MessageStyle, request::read_body},
    },
};

/// Decodes a request body. Content that this framework's types cannot represent exactly is kept
/// raw: messages and tools alongside their decoded form, and fields of the request in `extra`.
pub(super) fn decode_request(body: &str, profile: &OllamaProfile, manner: &MessageStyle) -> Result<ParsedRequest> {
    let mut body = read_body(body, manner)?;
    let mut reader = Reader { manner, at: 0, asked: VecDeque::new() };
    body.read_messages(|json| reader.read(json))?;
    let (parsed, said) = (&mut body.parsed, &body.said);
    parsed.stream = said.get("stream").is_none_or(|said| said != false);
    parsed.params = params(said);
    let written = Settings::new("", &parsed.params, profile, parsed.stream);
    let written = serde_json::from_value(json!(written)).unwrap_or_default();
    Ok(body.finish(written))
}

open_struct! {
    Said {
        role: Str<'a> = "role",
        content: Str<'a> = "content",
        images: Vec<Str<'a>> = "images",
        tool_name: Str<'a> = "tool_name",
        tool_call_id: Str<'a> = "tool_call_id",
    }
}

/// Decodes the messages of one request, in order.
struct Reader<'a> {
    manner: &'a MessageStyle,
    at: usize,
    /// Calls without a result so far: their ids and tools.
    asked: VecDeque<(Arc<str>, Arc<str>)>,
}

impl Reader<'_> {
    /// Decodes one message, which keeps its JSON.
    fn read(&mut self, json: &RawValue) -> serde_json::Result<Message> {
        let raw = Raw::new(self.manner.origin.clone(), json.to_owned());
        let said: Said<'_> = serde_json::from_str(json.get())?;
        self.at += 1;
        let role = said.role.as_ref().map_or("", |role| &*role.0);
        if role == "assistant" {
            return self.turn(json, raw);
        }
        let text = said.content.as_ref().filter(|text| !text.is_empty()).map(|text| Part::text(text.0.clone()));
        let images = said.images.iter().flatten().map(|data| Part::Image(Media::base64(data.0.clone(), "image/png")));
        let parts: Vec<_> = text.into_iter().chain(images).collect();
        Ok(match role {
            "system" => Message::System(SystemMessage::new(parts).with_raw(raw)),
            "tool" => {
                let (id, name) = self.answered(&said);
                Message::Tool(ToolMessage::new(id, name, Arc::new(parts), false).with_raw(raw))
            }
            _ => Message::User(UserMessage::new(parts).with_raw(raw)),
        })
    }

    /// An empty turn is kept as well: the model saw it.
    fn turn(&mut self, json: &RawValue, raw: Raw) -> serde_json::Result<Message> {
        let mut fold = Fold::new(self.manner.origin.clone(), false);
        fold.push(json, &self.at.to_string(), &mut Vec::new())?;
        let mut message = fold.finish(json.to_owned(), &mut Vec::new());
        if message.blocks().is_empty() {
            message = agent_core::AssistantMessage::from_provider(vec![Block::Other(raw.clone())], raw);
        }
        self.asked = message.calls().map(|call| (call.id.clone(), call.name.clone())).collect();
        Ok(Message::Assistant(message))
    }

    /// Returns the call that a result answers: the one with its id, or else the first of its tool.
    fn answered(&mut self, said: &Said<'_>) -> (Arc<str>, Arc<str>) {
        let id = said.tool_call_id.as_ref().map_or("", |id| &*id.0);
        let tool = said.tool_name.as_ref().map_or("", |name| &*name.0);
        let is_it = |(known, name): &(Arc<str>, Arc<str>)| match id {
            "" => tool.is_empty() || **name == *tool,
            _ => **known == *id,
        };
        let found = self.asked.iter().position(is_it).and_then(|at| self.asked.remove(at));
        found.unwrap_or_else(|| (id.into(), tool.into()))
    }
}
