//! Reading the instructions, the conversation and the tools of a request.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, History, Message, Part, SystemMessage, ToolMessage, ToolSpec, ToolSpecs, UserMessage,
    message::{Origin, Raw},
};
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;

use crate::wire::{
    anthropic::{parts::part_json, read, tools::function},
    json::same,
    lenient::{Content, Str},
    open_struct::open_struct,
};

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Content<'a>,
}

open_struct! {
    ResultSaid {
        _kind: &'a RawValue = "type",
        tool_use_id: Str<'a> = "tool_use_id",
        content: Content<'a> = "content",
        is_error: bool = "is_error",
    }
}

open_struct! {
    ToolSaid {
        kind: Str<'a> = "type",
        name: Str<'a> = "name",
        mcp_server_name: Str<'a> = "mcp_server_name",
        description: Str<'a> = "description",
        input_schema: &'a RawValue = "input_schema",
    }
}

/// The system prompt: a text or a list of texts.
pub(super) fn instructions(json: &RawValue, origin: &Origin) -> serde_json::Result<SystemMessage> {
    let content: Content<'_> = serde_json::from_str(json.get())?;
    Ok(SystemMessage::new(parts(&content, origin)).with_raw(raw(json, origin)))
}

/// The conversation, repaired if no provider would take it.
pub(super) fn conversation(messages: &[&RawValue], origin: &Origin) -> serde_json::Result<History> {
    let mut reading = Reading { origin, messages: Vec::new(), names: BTreeMap::new() };
    messages.iter().try_for_each(|json| reading.message(json))?;
    Ok(History::import(reading.messages).0)
}

struct Reading<'a> {
    origin: &'a Origin,
    messages: Vec<Message>,
    /// The tools of the calls so far, by their ids.
    names: BTreeMap<Arc<str>, Arc<str>>,
}

impl Reading<'_> {
    fn message(&mut self, json: &RawValue) -> serde_json::Result<()> {
        let spoken: Spoken<'_> = serde_json::from_str(json.get())?;
        let as_sent = raw(json, self.origin);
        match (&*spoken.role.0, &spoken.content) {
            ("assistant", _) => self.assistant(json)?,
            ("system", content) => {
                let message = SystemMessage::new(parts(content, self.origin)).with_raw(as_sent);
                self.messages.push(Message::System(message));
            }
            ("user", Content::Parts(blocks)) if blocks.iter().any(|block| is_result(block)) => self.answers(blocks),
            ("user", content) => {
                let message = UserMessage::new(parts(content, self.origin)).with_raw(as_sent);
                self.messages.push(Message::User(message));
            }
            (role, _) => return Err(serde_json::Error::custom(format!("there is no role '{role}'"))),
        }
        Ok(())
    }

    /// The assistant's next message. After one with calls, it is the same turn: only then do the results follow.
    fn assistant(&mut self, json: &RawValue) -> serde_json::Result<()> {
        let mut blocks = read::turn(json.get(), self.origin)?;
        let mut as_sent = raw(json, self.origin);
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

    /// A message with results: what else it holds follows them in a message without JSON of its own, which is therefore
    /// written in the same message again.
    fn answers(&mut self, blocks: &[&RawValue]) {
        let mut others = Vec::new();
        for json in blocks {
            let said: ResultSaid<'_> = match serde_json::from_str(json.get()) {
                Ok(said) if is_result(json) => said,
                _ => {
                    others.push(exact_part(json, self.origin));
                    continue;
                }
            };
            let id = said.tool_use_id.unwrap_or_default();
            let name = self.names.get(&*id.0).cloned().unwrap_or_default();
            let parts = said.content.map(|content| parts(&content, self.origin)).unwrap_or_default();
            let result = ToolMessage::new(id.0, name, parts.into(), said.is_error.unwrap_or_default());
            self.messages.push(Message::Tool(result.with_raw(raw(json, self.origin))));
        }
        if !others.is_empty() {
            self.messages.push(Message::User(UserMessage::new(others)));
        }
    }
}

fn is_result(json: &RawValue) -> bool {
    read::kind(json.get()) == "tool_result"
}

fn parts(content: &Content<'_>, origin: &Origin) -> Vec<Part> {
    match content {
        Content::Text(text) => vec![Part::text(&**text)],
        Content::Parts(parts) => parts.iter().map(|json| read::part(json, origin)).collect(),
    }
}

/// A part with its JSON, unless it is written just so.
fn exact_part(json: &RawValue, origin: &Origin) -> Part {
    let mut part = read::part(json, origin);
    if !same(&part_json(origin, &part), json) {
        match &mut part {
            Part::Text(text) => text.raw = Some(raw(json, origin)),
            Part::Image(media) | Part::Document(media) => media.raw = Some(raw(json, origin)),
            _ => {}
        }
    }
    part
}

/// The tools, each with its JSON unless it is written just so. One without a schema runs at the provider.
pub(super) fn tools(tools: &[&RawValue], origin: &Origin) -> serde_json::Result<ToolSpecs> {
    tools.iter().map(|json| tool(json, origin)).collect()
}

fn tool(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolSpec> {
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let name = said.name.or(said.mcp_server_name).or(said.kind).unwrap_or_default().0;
    let mut spec = match said.input_schema {
        Some(schema) => {
            let description = said.description.unwrap_or_default().0;
            ToolSpec::new(name, description, serde_json::from_str(schema.get())?)
        }
        None => return Ok(ToolSpec::server_side(name, raw(json, origin))),
    };
    spec.cache = read::cache(json);
    let is_exact = same(&function(&spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw(json, origin)) })
}

fn raw(json: &RawValue, origin: &Origin) -> Raw {
    Raw::new(origin.clone(), json.to_owned())
}
