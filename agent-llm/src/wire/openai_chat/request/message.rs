//! Reading the messages of a request back.

use std::sync::Arc;

use agent_core::{AssistantMessage, Block, Message, Part, SystemMessage, ToolMessage, UserMessage, message::Raw};
use serde_json::value::RawValue;

use crate::wire::{
    json::{same, same_bytes},
    lenient::{Content, Str},
    open_struct::open_struct,
    openai_chat::{
        message::{Manner, write_result, write_spoken},
        parts::part_json,
        read::{ORDER, read},
        read_part::{part, raw},
    },
};

open_struct! {
    Said {
        role: Str<'a> = "role",
        content: Content<'a> = "content",
        tool_call_id: Str<'a> = "tool_call_id",
    }
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
        let role = role.unwrap_or_default().0;
        if role == "assistant" {
            let message = assistant(manner, json)?;
            self.asked = Some(message.clone());
            return Ok(Message::Assistant(message));
        }
        let parts = self.parts(content)?;
        self.written.clear();
        match &*role {
            "system" | "developer" => {
                let message = SystemMessage::new(parts);
                write_spoken(manner, manner.system_role.as_str(), None, message.parts(), &mut self.written);
                Ok(Message::System(self.keep(json, message, SystemMessage::with_raw)))
            }
            "tool" => {
                let id: Arc<str> = tool_call_id.unwrap_or_default().0.into();
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

    fn parts(&self, content: Option<Content<'_>>) -> serde_json::Result<Vec<Part>> {
        match content {
            None => Ok(Vec::new()),
            Some(Content::Text(text)) => Ok(vec![Part::text(text)]),
            Some(Content::Parts(list)) => list.into_iter().map(|json| self.part(json)).collect(),
        }
    }

    fn part(&self, json: &RawValue) -> serde_json::Result<Part> {
        let plain = match part(json, &self.manner.origin)? {
            Block::Text(text) => Part::Text(text.with_raw(None)),
            Block::Image(media) => Part::Image(media.with_raw(None)),
            Block::Document(media) => Part::Document(media.with_raw(None)),
            _ => return Ok(Part::Other(raw(json, &self.manner.origin))),
        };
        let is_exact = part_json(self.manner, &plain).is_some_and(|written| same(&written, json));
        Ok(if is_exact { plain } else { with_own(plain, raw(json, &self.manner.origin)) })
    }
}

/// The part with its JSON, which says more.
fn with_own(part: Part, raw: Raw) -> Part {
    match part {
        Part::Text(text) => Part::Text(text.with_raw(raw)),
        Part::Image(media) => Part::Image(media.with_raw(raw)),
        Part::Document(media) => Part::Document(media.with_raw(raw)),
        other => other,
    }
}

/// A message of the model's. One that says nothing is kept as well: the model was shown it.
fn assistant(manner: &Manner, json: &RawValue) -> serde_json::Result<AssistantMessage> {
    let mut reading = read(json, &manner.origin, "", ORDER)?;
    let raw = raw(json, &manner.origin);
    if reading.blocks.is_empty() {
        reading.blocks.push(Block::Other(raw.clone()));
    }
    Ok(reading.into_message(raw))
}
