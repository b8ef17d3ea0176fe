//! Reading requests back. What the framework's own terms do not say exactly is kept as it came: messages, parts and tools beside
//! what was understood of them, and fields of the request in `extra`.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Message, Part, Result, SystemMessage, ToolMessage, UserMessage, message::Raw,
};
use serde_json::value::RawValue;

use super::{
    messages::{Manner, write_result, write_spoken},
    parts::{part, part_json},
    read::{ORDER, read},
    settings::{Settings, back},
    tools::read_tool,
};
use crate::{
    ParsedRequest,
    wire::{
        ended::message,
        json::{raw, same, same_bytes},
        lenient::{Content, Str},
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

/// Reads the body of a request.
pub(super) fn decode_request(body: &str, manner: &Manner) -> Result<ParsedRequest> {
    let profile = &manner.profile;
    let mut body = read_body(body, manner)?;
    let mut reader = Reader::new(manner);
    body.read_messages(|json| reader.read(json))?;
    let (parsed, said) = (&mut body.parsed, &body.said);
    parsed.stream = said.get("stream").is_some_and(|said| said == true);
    parsed.params = back::params(said, profile);
    let has_tools = !parsed.tools.is_empty() || said.contains_key("tools");
    let params = &parsed.params;
    let settings = Settings { model: "", params, profile, has_tools, stream: parsed.stream, search: None };
    let written = back::written(&settings, said);
    Ok(body.finish(written))
}

/// A body with messages, and with tools of this API's form.
pub(in crate::wire) fn read_body<'a>(body: &'a str, manner: &Manner) -> Result<Body<'a>> {
    Body::read(body, "messages", |json| read_tool(manner, json))
}

/// Reads the messages of one request, in order.
pub(in crate::wire) struct Reader<'a> {
    manner: &'a Manner,
    /// The assistant message whose calls are being answered.
    asked: Option<AssistantMessage>,
    /// What the message under the reader's eyes would be written as.
    written: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(in crate::wire) fn new(manner: &'a Manner) -> Self {
        Self { manner, asked: None, written: Vec::new() }
    }

    /// Reads one message. It keeps its JSON if it would be written otherwise.
    pub(in crate::wire) fn read(&mut self, json: &RawValue) -> serde_json::Result<Message> {
        let manner = self.manner;
        let Said { role, content, tool_call_id, .. } = serde_json::from_str(json.get())?;
        let role = role.unwrap_or_default();
        if &*role == "assistant" {
            let message = assistant(manner, json)?;
            self.asked = Some(message.clone());
            return Ok(Message::Assistant(message));
        }
        let parts = self.parts(content);
        self.written.clear();
        match &*role {
            "system" | "developer" => {
                let message = SystemMessage::new(parts);
                write_spoken(manner, manner.system_role(), None, message.parts(), &mut self.written);
                Ok(Message::System(self.keep(json, message, SystemMessage::with_raw)))
            }
            "tool" => {
                let id: Arc<str> = tool_call_id.as_deref().unwrap_or_default().into();
                let call = self.asked.iter().flat_map(AssistantMessage::calls).find(|call| call.id == id);
                let name = call.map(|call| call.name.clone()).unwrap_or_default();
                let message = ToolMessage::new(id, name, Arc::new(parts), false);
                write_result(manner, &message, true, &mut self.written);
                Ok(Message::Tool(self.keep(json, message, ToolMessage::with_raw)))
            }
            // Whoever else speaks is not the model. (`function` answers calls of a kind that nobody makes any more.)
            _ => {
                let message = UserMessage::new(parts);
                write_spoken(manner, "user", None, message.parts(), &mut self.written);
                Ok(Message::User(self.keep(json, message, UserMessage::with_raw)))
            }
        }
    }

    fn keep<M>(&self, json: &RawValue, message: M, with_raw: fn(M, Raw) -> M) -> M {
        if same_bytes(&self.written, json) { message } else { with_raw(message, raw(json, &self.manner.origin)) }
    }

    fn parts(&self, content: Option<Content<'_>>) -> Vec<Part> {
        match content {
            None => Vec::new(),
            Some(Content::Text(text)) => vec![Part::text(text)],
            Some(Content::Parts(list)) => list.into_iter().map(|json| self.part(json)).collect(),
        }
    }

    /// The part, which keeps its JSON if that says more.
    fn part(&self, json: &RawValue) -> Part {
        let with = |own: Option<Raw>| match part(json, &self.manner.origin) {
            Block::Text(text) => Part::Text(text.with_raw(own)),
            Block::Image(media) => Part::Image(media.with_raw(own)),
            Block::Document(media) => Part::Document(media.with_raw(own)),
            _ => Part::Other(raw(json, &self.manner.origin)),
        };
        let plain = with(None);
        let is_exact = part_json(self.manner, &plain).is_some_and(|written| same(&written, json));
        if is_exact { plain } else { with(Some(raw(json, &self.manner.origin))) }
    }
}

/// A message of the model's. One that says nothing is kept as well: the model was shown it.
fn assistant(manner: &Manner, json: &RawValue) -> serde_json::Result<AssistantMessage> {
    let mut blocks = read(json, &manner.origin, ORDER)?;
    let raw = raw(json, &manner.origin);
    if blocks.is_empty() {
        blocks.push(Block::Other(raw.clone()));
    }
    Ok(message(blocks, "", raw, |blocks| blocks))
}
