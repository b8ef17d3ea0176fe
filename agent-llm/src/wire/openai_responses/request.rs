//! Reading requests: their fields, and from their items to messages.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, History, Message, Part, Result, SystemMessage, ToolMessage, UserMessage,
    message::{Origin, Raw},
};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    Manner,
    parts::read_part,
    read::{items, read as read_item},
    settings::{Settings, params},
    tools::read_tool,
};
use crate::{
    ParsedRequest, Profile,
    wire::{
        json::raw,
        lenient::{Content, Str, lenient},
        open_struct::open_struct,
        request::Body,
    },
};

/// Reads the body of a request.
pub(super) fn read(body: &str, profile: &Profile, manner: &Manner) -> Result<ParsedRequest> {
    let mut body = Body::read(body, "input", |json| Ok(read_tool(json, manner)))?;
    match body.conversation.map(|json| (json, json.get().as_bytes().first())) {
        Some((text, Some(b'"'))) => {
            let said = UserMessage::new(parts(text, &manner.origin)).with_raw(raw(text, &manner.origin));
            body.parsed.messages = History::import([Message::User(said)]).0;
        }
        Some((list, Some(b'['))) if list.get() != "[]" => {
            body.parsed.messages = turns(&items(list.get()), &manner.origin);
        }
        Some((other, _)) => body.keep("input", other)?,
        None => {}
    }
    body.said.retain(|name, value| !(name == "stream" && *value == false));
    let (parsed, said) = (&mut body.parsed, &body.said);
    parsed.stream = said.get("stream").is_some_and(|said| *said == true);
    let instructions = said.get("instructions").and_then(|said| said.as_str());
    parsed.system = instructions.map(|text| SystemMessage::new(vec![Part::text(text)]));
    parsed.params = params(said);
    let (system, specs, params) = (parsed.system.as_ref(), &parsed.tools, &parsed.params);
    let written = Settings { system, specs, params, stream: parsed.stream, profile, manner }.fields().into();
    Ok(body.finish(written))
}

open_struct! {
    ItemSaid {
        kind: Str<'a> = "type",
        role: Str<'a> = "role",
        content: &'a RawValue = "content",
        call_id: Str<'a> = "call_id",
        output: &'a RawValue = "output",
        execution: Str<'a> = "execution",
    }
}

/// The messages of these items. Items of the model that follow each other are one turn.
///
/// All items are kept. Calls without a result, and results without a call, are kept as what is not understood; results that
/// stand in another order than their calls are put in that order.
fn turns(items: &[&RawValue], origin: &Origin) -> History {
    let mut reader =
        Reader { origin, messages: Vec::new(), items: Vec::new(), blocks: Vec::new(), results: Vec::new() };
    items.iter().for_each(|json| reader.push(json));
    reader.close();
    History::import(reader.messages).0
}

struct Reader<'a> {
    origin: &'a Origin,
    messages: Vec<Message>,
    /// The items of the turn under way, the blocks that each holds, and the results of its calls.
    items: Vec<&'a RawValue>,
    blocks: Vec<(&'a RawValue, Block)>,
    results: Vec<ToolMessage>,
}

impl<'a> Reader<'a> {
    fn push(&mut self, json: &'a RawValue) {
        let said: ItemSaid<'_> = lenient(json);
        let raw = raw(json, self.origin);
        let origin = self.origin;
        let parts = |json: Option<&RawValue>| json.map(|json| parts(json, origin)).unwrap_or_default();
        match (said.kind.as_deref().unwrap_or_default(), said.role.as_deref().unwrap_or_default()) {
            ("message" | "", "user") => {
                self.say(Message::User(UserMessage::new(parts(said.content)).with_raw(raw)));
            }
            ("message" | "", "system" | "developer") => {
                self.say(Message::System(SystemMessage::new(parts(said.content)).with_raw(raw)));
            }
            ("function_call_output" | "custom_tool_call_output" | "computer_call_output", _) => {
                match self.unanswered(said.call_id.as_deref().unwrap_or_default()) {
                    Some((id, name)) => {
                        self.results.push(ToolMessage::new(id, name, parts(said.output).into(), false).with_raw(raw));
                    }
                    None => self.say_other(raw),
                }
            }
            ("message" | "", "assistant")
            | ("reasoning" | "mcp_list_tools" | "mcp_approval_request" | "compaction", _) => self.go_on(json),
            ("tool_search_output", _) if said.execution.as_deref() == Some("server") => self.go_on(json),
            (kind, _) if kind.ends_with("_call") => self.go_on(json),
            _ => self.say_other(raw),
        }
    }

    /// The model's turn goes on, or another begins.
    fn go_on(&mut self, json: &'a RawValue) {
        if !self.results.is_empty() {
            self.close();
        }
        self.items.push(json);
        self.blocks.extend(read_item(json, self.origin).into_iter().map(|block| (json, block)));
    }

    /// What nobody says as a message stays its provider's.
    fn say_other(&mut self, raw: Raw) {
        self.say(Message::User(UserMessage::new(vec![Part::Other(raw.clone())]).with_raw(raw)));
    }

    fn say(&mut self, message: Message) {
        self.close();
        self.messages.push(message);
    }

    /// The turn is complete.
    fn close(&mut self) {
        let (items, mut results) = (std::mem::take(&mut self.items), std::mem::take(&mut self.results));
        if items.is_empty() {
            return;
        }
        let mut answered = Vec::new();
        let mut blocks = Vec::new();
        for (json, block) in self.blocks.drain(..) {
            let is_paired = match &block {
                Block::ToolCall(call) => {
                    let has_result = results.iter().any(|result| result.call_id() == &*call.id);
                    let is_first = !answered.contains(&call.id);
                    answered.push(call.id.clone());
                    has_result && is_first
                }
                _ => true,
            };
            blocks.push(if is_paired { block } else { Block::Other(raw(json, self.origin)) });
        }
        if blocks.is_empty() {
            blocks.extend(items.iter().map(|json| Block::Other(raw(json, self.origin))));
        }
        results.sort_by_key(|result| answered.iter().position(|id| **id == *result.call_id()));
        let list = Raw::new(self.origin.clone(), to_raw_value(&items).unwrap_or_default());
        self.messages.push(Message::Assistant(AssistantMessage::from_provider(blocks, list)));
        self.messages.extend(results.into_iter().map(Message::Tool));
    }

    /// The id and the tool of the call that has this id, if no result has answered it.
    fn unanswered(&self, id: &str) -> Option<(Arc<str>, Arc<str>)> {
        let is_open = !id.is_empty() && self.results.iter().all(|result| result.call_id() != id);
        let mut calls = self.blocks.iter().filter(|_| is_open).filter_map(|(_, block)| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        });
        calls.find(|call| *call.id == *id).map(|call| (call.id.clone(), call.name.clone()))
    }
}

/// The parts of a content.
fn parts(json: &RawValue, origin: &Origin) -> Vec<Part> {
    match serde_json::from_str(json.get()) {
        Ok(Content::Text(text)) => vec![Part::text(text)],
        Ok(Content::Parts(parts)) => parts.into_iter().map(|json| read_part(json, origin)).collect(),
        Err(_) => Vec::new(),
    }
}
