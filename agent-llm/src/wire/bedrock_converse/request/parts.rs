//! Reading the instructions, the conversation and the tools of a request.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{
    AssistantMessage, History, Message, Part, SystemMessage, ToolMessage, ToolSpec, ToolSpecs, UserMessage,
    message::{Origin, Raw},
};
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;

use crate::wire::{
    bedrock_converse::{
        parts::{mark_of, parts_json},
        read,
        tools::tool_json,
    },
    json::same,
    lenient::Str,
    open_struct::open_struct,
};

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

open_struct! {
    BlockSaid { result: ResultSaid<'a> = "toolResult", }
}

open_struct! {
    ResultSaid { id: Str<'a> = "toolUseId", content: Vec<&'a RawValue> = "content", status: Str<'a> = "status", }
}

open_struct! {
    ToolSaid { spec: SpecSaid<'a> = "toolSpec", system: SystemTool<'a> = "systemTool", }
}

open_struct! {
    SpecSaid { name: Str<'a> = "name", description: Str<'a> = "description", schema: SchemaSaid<'a> = "inputSchema", }
}

open_struct! {
    SchemaSaid { json: &'a RawValue = "json", }
}

open_struct! {
    SystemTool { name: Str<'a> = "name", }
}

/// The system prompt.
pub(super) fn instructions(json: &RawValue, origin: &Origin) -> serde_json::Result<SystemMessage> {
    let content: Vec<&RawValue> = serde_json::from_str(json.get())?;
    Ok(SystemMessage::new(read::parts(&content, origin)).with_raw(raw(json, origin)))
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
        match &*spoken.role.0 {
            "assistant" => self.assistant(json)?,
            "user" if spoken.content.iter().any(|json| result(json).is_some()) => self.answers(&spoken.content),
            "user" => {
                let parts = read::parts(&spoken.content, self.origin);
                self.messages.push(Message::User(UserMessage::new(parts).with_raw(raw(json, self.origin))));
            }
            role => return Err(serde_json::Error::custom(format!("there is no role '{role}'"))),
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
            let Some(said) = result(json) else {
                others.push(exact_part(json, self.origin));
                continue;
            };
            let id = said.id.unwrap_or_default();
            let name = self.names.get(&*id.0).cloned().unwrap_or_default();
            let parts = read::parts(&said.content.unwrap_or_default(), self.origin);
            let is_error = said.status.is_some_and(|status| status.0 == "error");
            let result = ToolMessage::new(id.0, name, parts.into(), is_error);
            self.messages.push(Message::Tool(result.with_raw(raw(json, self.origin))));
        }
        if !others.is_empty() {
            self.messages.push(Message::User(UserMessage::new(others)));
        }
    }
}

fn result(json: &RawValue) -> Option<ResultSaid<'_>> {
    serde_json::from_str::<BlockSaid<'_>>(json.get()).ok()?.result
}

/// A part with its JSON, unless it is written just so.
fn exact_part(json: &RawValue, origin: &Origin) -> Part {
    let mut part = read::part(json, origin);
    if !same(&parts_json(origin, 0, std::slice::from_ref(&part)).first(), json) {
        match &mut part {
            Part::Text(text) => text.raw = Some(raw(json, origin)),
            Part::Image(media) | Part::Document(media) => media.raw = Some(raw(json, origin)),
            _ => {}
        }
    }
    part
}

/// The tools, each with its JSON unless it is written just so. A cache point is the mark of the tool before it. What is no
/// tool of the caller's runs at the provider.
pub(super) fn tools(tools: &[&RawValue], origin: &Origin) -> serde_json::Result<ToolSpecs> {
    let mut specs: Vec<ToolSpec> = Vec::new();
    for json in tools {
        match (mark_of(json), specs.last_mut()) {
            (Some(mark), Some(spec)) if spec.cache.is_none() => spec.cache = Some(mark),
            _ => specs.push(tool(json, origin)?),
        }
    }
    Ok(specs.into_iter().collect())
}

fn tool(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolSpec> {
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let Some(SpecSaid { name: Some(name), description, schema: Some(SchemaSaid { json: Some(schema), .. }), .. }) =
        said.spec
    else {
        let name = said.system.and_then(|tool| tool.name).unwrap_or_default();
        return Ok(ToolSpec::server_side(name.0, raw(json, origin)));
    };
    let spec = ToolSpec::new(name.0, description.unwrap_or_default().0, serde_json::from_str(schema.get())?);
    let is_exact = same(&tool_json(origin, &spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw(json, origin)) })
}

fn raw(json: &RawValue, origin: &Origin) -> Raw {
    Raw::new(origin.clone(), json.to_owned())
}
