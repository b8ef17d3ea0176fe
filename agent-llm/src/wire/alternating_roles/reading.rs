//! Decoding of requests with alternating roles.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, History, Message, Part, SystemMessage, ToolMessage, UserMessage,
    message::{Origin, Raw},
};
use serde::de::Error;
use serde_json::{Map, Value, value::RawValue};

use super::{AlternatingRoles, Spoken, read_turn};
use crate::{
    ParsedRequest,
    wire::{
        json::{raw, same},
        lenient::{Content, text},
    },
};

/// Raw fields of a request.
pub(crate) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// A tool result: the id of its call, its content, and whether it failed.
pub(crate) type Answer = (String, Vec<Part>, bool);

/// Returns the non-null fields of a body.
///
/// # Errors
/// If the body is not an object.
pub(crate) fn fields(body: &str) -> serde_json::Result<Fields<'_>> {
    let mut fields: Fields<'_> = serde_json::from_str(body)?;
    fields.retain(|_, json| json.get() != "null");
    Ok(fields)
}

/// Removes a request's model, system prompt and conversation from its fields.
///
/// # Errors
/// If one of them is invalid.
pub(crate) fn take_request<W: AlternatingRoles>(
    fields: &mut Fields<'_>,
    origin: &Origin,
) -> serde_json::Result<ParsedRequest> {
    let mut parsed = ParsedRequest::default();
    if let Some(model) = fields.remove("model") {
        parsed.model = serde_json::from_str(model.get())?;
    }
    if let Some(system) = fields.remove("system") {
        let parts = read_parts::<W>(&serde_json::from_str(system.get())?, origin);
        parsed.system = Some(SystemMessage::new(parts).with_raw(raw(system, origin)));
    }
    let mut reading = Reading { origin, messages: Vec::new(), names: BTreeMap::new() };
    let messages: Vec<&RawValue> = serde_json::from_str(fields.remove("messages").map_or("[]", RawValue::get))?;
    messages.into_iter().try_for_each(|json| reading.message::<W>(json))?;
    parsed.messages = History::import(reading.messages).0;
    Ok(parsed)
}

/// Parses the values of unknown fields.
///
/// # Errors
/// If one contains a number that cannot be represented.
pub(crate) fn values(fields: Fields<'_>) -> serde_json::Result<Map<String, Value>> {
    fields.into_iter().map(|(name, json)| Ok((name, serde_json::from_str(json.get())?))).collect()
}

/// A partly decoded conversation.
struct Reading<'a> {
    origin: &'a Origin,
    messages: Vec<Message>,
    /// Names of the tools called so far, by call id.
    names: BTreeMap<Arc<str>, Arc<str>>,
}

impl Reading<'_> {
    fn message<W: AlternatingRoles>(&mut self, json: &RawValue) -> serde_json::Result<()> {
        let Spoken { role, content } = serde_json::from_str(json.get())?;
        let content = content.ok_or_else(|| Error::missing_field("content"))?;
        let parts = || read_parts::<W>(&content, self.origin);
        let as_sent = raw(json, self.origin);
        let message = match (text(&role), &content) {
            ("assistant", _) => return self.assistant::<W>(json),
            ("user", Content::Parts(blocks))
                if blocks.iter().any(|json| W::read_result(json, self.origin).is_some()) =>
            {
                self.answers::<W>(blocks);
                return Ok(());
            }
            ("user", _) => Message::User(UserMessage::new(parts()).with_raw(as_sent)),
            ("system", _) => Message::System(SystemMessage::new(parts()).with_raw(as_sent)),
            (role, _) => return Err(Error::custom(format!("there is no role '{role}'"))),
        };
        self.messages.push(message);
        Ok(())
    }

    /// Adds the assistant's next message. A message after one with calls belongs to the same turn:
    /// the results follow after it.
    fn assistant<W: AlternatingRoles>(&mut self, json: &RawValue) -> serde_json::Result<()> {
        let (mut blocks, mut as_sent) = (read_turn::<W>(json.get(), self.origin)?, raw(json, self.origin));
        if let Some(Message::Assistant(before)) =
            self.messages.pop_if(|m| m.as_assistant().is_some_and(AssistantMessage::has_calls))
        {
            let said = before.raw().map_or("", Raw::json);
            let said = said.strip_prefix('[').and_then(|said| said.strip_suffix(']')).unwrap_or(said);
            as_sent = Raw::parse(self.origin.clone(), format!("[{said},{}]", json.get()))?;
            blocks = before.blocks().iter().cloned().chain(blocks).collect();
        }
        let message = AssistantMessage::from_provider(blocks, as_sent);
        self.names.extend(message.calls().map(|call| (call.id.clone(), call.name.clone())));
        self.messages.push(Message::Assistant(message));
        Ok(())
    }

    /// Adds a message with results. Its other parts follow in a separate message without raw JSON,
    /// which is therefore encoded into the same message again. The parts keep their JSON if their
    /// encoding differs from it.
    fn answers<W: AlternatingRoles>(&mut self, blocks: &[&RawValue]) {
        let mut others = Vec::new();
        for json in blocks {
            match W::read_result(json, self.origin) {
                Some((id, parts, is_error)) => {
                    let name = self.names.get(&*id).cloned().unwrap_or_default();
                    let result = ToolMessage::new(id, name, parts.into(), is_error);
                    self.messages.push(Message::Tool(result.with_raw(raw(json, self.origin))));
                }
                None => {
                    let parts = W::read_parts(&[json], self.origin);
                    let is_exact = same(&W::parts(self.origin, 0, &parts).first(), json);
                    let keep = |part| if is_exact { part } else { with_raw(part, raw(json, self.origin)) };
                    others.extend(parts.into_iter().map(keep));
                }
            }
        }
        if !others.is_empty() {
            self.messages.push(Message::User(UserMessage::new(others)));
        }
    }
}

/// Decodes the parts of a text or of a list of blocks.
pub(crate) fn read_parts<W: AlternatingRoles>(content: &Content<'_>, origin: &Origin) -> Vec<Part> {
    match content {
        Content::Text(text) => vec![Part::text(&**text)],
        Content::Parts(parts) => W::read_parts(parts, origin),
    }
}

fn with_raw(mut part: Part, as_sent: Raw) -> Part {
    match &mut part {
        Part::Text(text) => text.raw = Some(as_sent),
        Part::Image(media) | Part::Document(media) => media.raw = Some(as_sent),
        _ => {}
    }
    part
}
