//! Decoding of requests. Content that this framework's types cannot represent exactly is kept raw:
//! messages, parts and tools alongside their decoded form, and fields of the request in `extra`.

use std::sync::Arc;

use agent_core::{AssistantMessage, Block, Message, Result, SystemMessage, ToolMessage, UserMessage};
use serde_json::{Map, Value, value::RawValue};

use super::{
    back::{params, read_part, read_tool},
    encode::tool_json,
    messages::{MessageStyle, write_alone},
    parts::part_json,
    read::{ORDER, read},
    settings::{LIMITS, Settings},
};
use crate::{
    ParsedRequest,
    wire::{
        ended::message,
        json::{raw, same_bytes},
        lenient::{Content, Str, text},
        open_struct::open_struct,
        request::Body,
    },
};

open_struct! {
    Said {
        role: Str<'a> = "role",
        content: Content<'a> = "content",
        tool_call_id: Str<'a> = "tool_call_id",
    }
}

/// Decodes a request body.
pub(super) fn decode_request(body: &str, manner: &MessageStyle) -> Result<ParsedRequest> {
    let profile = &manner.profile;
    let mut body = read_body(body, manner)?;
    let mut reader = Reader::new(manner);
    body.read_messages(|json| reader.read(json))?;
    let (parsed, said) = (&mut body.parsed, &body.said);
    parsed.stream = said.get("stream").is_some_and(|said| said == true);
    parsed.params = params(said, profile);
    let has_tools = !parsed.tools.is_empty() || said.contains_key("tools");
    let params = &parsed.params;
    let settings = Settings { model: "", params, profile, has_tools, stream: parsed.stream, search: None };
    let written = written(&settings, said);
    Ok(body.finish(written))
}

/// Returns the fields that the decoded settings of this request encode to. A client that sets
/// streaming or limits in another way has all of those fields in `extra`.
fn written(settings: &Settings<'_>, said: &Map<String, Value>) -> Map<String, Value> {
    let mut written: Map<_, _> = settings.fields().into();
    if said.get("stream_options") != written.get("stream_options") {
        written.retain(|name, _| !matches!(name.as_str(), "stream" | "stream_options"));
    }
    if LIMITS.iter().any(|name| said.contains_key(*name) != written.contains_key(*name)) {
        written.retain(|name, _| !LIMITS.contains(&name.as_str()));
    }
    written
}

/// Decodes a body with messages, and with tools in this API's format.
pub(in crate::wire) fn read_body<'a>(body: &'a str, manner: &MessageStyle) -> Result<Body<'a>> {
    Body::read(body, "messages", |json| read_tool(json, &manner.origin, |spec| tool_json(manner, spec)))
}

/// Decodes the messages of one request, in order.
pub(in crate::wire) struct Reader<'a> {
    manner: &'a MessageStyle,
    /// Assistant message whose calls are being answered.
    asked: Option<AssistantMessage>,
    /// Buffer for the encoding of the current message.
    written: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(in crate::wire) fn new(manner: &'a MessageStyle) -> Self {
        Self { manner, asked: None, written: Vec::new() }
    }

    /// Decodes one message. It keeps its JSON if its encoding differs from it.
    pub(in crate::wire) fn read(&mut self, json: &RawValue) -> serde_json::Result<Message> {
        let Said { role, content, tool_call_id, .. } = serde_json::from_str(json.get())?;
        if text(&role) == "assistant" {
            let message = assistant(self.manner, json)?;
            self.asked = Some(message.clone());
            return Ok(Message::Assistant(message));
        }
        let part = |json: &RawValue| read_part(json, &self.manner.origin, |part| part_json(self.manner, part));
        let parts = content.map(|content| content.parts(part)).unwrap_or_default();
        let message = match text(&role) {
            "system" | "developer" => Message::System(SystemMessage::new(parts)),
            "tool" => {
                let id: Arc<str> = text(&tool_call_id).into();
                let call = self.asked.iter().flat_map(AssistantMessage::calls).find(|call| call.id == id);
                let name = call.map(|call| call.name.clone()).unwrap_or_default();
                Message::Tool(ToolMessage::new(id, name, Arc::new(parts), false))
            }
            // All other roles become user messages. (`function` answers an obsolete kind of call.)
            _ => Message::User(UserMessage::new(parts)),
        };
        self.written.clear();
        write_alone(self.manner, &message, &mut self.written);
        if same_bytes(&self.written, json) {
            return Ok(message);
        }
        let raw = raw(json, &self.manner.origin);
        Ok(match message {
            Message::System(message) => Message::System(message.with_raw(raw)),
            Message::Tool(message) => Message::Tool(message.with_raw(raw)),
            Message::User(message) => Message::User(message.with_raw(raw)),
            message @ Message::Assistant(_) => message,
        })
    }
}

/// Decodes a message of the model. An empty one is kept as well: the model saw it.
fn assistant(manner: &MessageStyle, json: &RawValue) -> serde_json::Result<AssistantMessage> {
    let mut blocks = read(json, &manner.origin, ORDER)?;
    let raw = raw(json, &manner.origin);
    if blocks.is_empty() {
        blocks.push(Block::Other(raw.clone()));
    }
    Ok(message(blocks, "", raw, |blocks| blocks))
}
