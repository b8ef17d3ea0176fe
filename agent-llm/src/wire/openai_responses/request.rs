//! Decoding of requests: fields, and items into messages.

use std::{borrow::Cow, collections::BTreeMap, mem::take};

use agent_core::{
    AssistantMessage, Block, History, Message, ModelParams, Part, Result, SystemMessage, ToolCall, ToolMessage,
    UserMessage, message::Raw,
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    MessageStyle,
    encode::part_json,
    read::{items, read as read_item},
    settings::{PLAIN, Settings},
    tools::tool_json,
};
use crate::{
    ParsedRequest,
    wire::{
        json::raw,
        lenient::{Content, Str, lenient},
        openai_chat::back::{read_choice, read_output, read_part, read_tool},
        request::Body,
        settings::read as read_params,
    },
};

/// Decodes a request body.
pub(super) fn read(body: &str, manner: &MessageStyle) -> Result<ParsedRequest> {
    let mut body = Body::read(body, "input", |json| read_tool(json, &manner.origin, |spec| tool_json(spec, manner)))?;
    match body.conversation.map(|json| (json, json.get().as_bytes().first())) {
        Some((text, Some(b'"'))) => {
            let said = UserMessage::new(parts(text, manner)).with_raw(raw(text, &manner.origin));
            body.parsed.messages = History::import([Message::User(said)]).0;
        }
        Some((list, Some(b'['))) if list.get() != "[]" => {
            body.parsed.messages = turns(&items(list.get()), manner);
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
    let written = Settings { system, specs, params, stream: parsed.stream, manner }.fields().into();
    Ok(body.finish(written))
}

/// Groups items into messages. Consecutive items of the model are one turn.
///
/// All items are kept. Calls without a result, and results without a call, are kept raw; results
/// are put in the order of their calls.
fn turns(items: &[&RawValue], manner: &MessageStyle) -> History {
    let mut reader = Reader { manner, messages: Vec::new(), items: Vec::new(), blocks: Vec::new(), is_answered: false };
    items.iter().for_each(|json| reader.push(json));
    reader.close();
    History::import(reader.messages).0
}

struct Reader<'a> {
    manner: &'a MessageStyle,
    messages: Vec<Message>,
    /// Items of the open turn.
    items: Vec<&'a RawValue>,
    /// Each of their blocks with its source JSON, and the result of a call.
    blocks: Vec<(&'a RawValue, Block, Option<ToolMessage>)>,
    is_answered: bool,
}

impl<'a> Reader<'a> {
    fn push(&mut self, json: &'a RawValue) {
        let said: BTreeMap<Cow<'_, str>, &RawValue> = lenient(json);
        let (manner, raw) = (self.manner, raw(json, &self.manner.origin));
        let text = |name: &str| said.get(name).map(|json| lenient::<Str<'_>>(json)).unwrap_or_default();
        let parts = |name: &str| said.get(name).map(|json| parts(json, manner)).unwrap_or_default();
        match (&*text("type"), &*text("role")) {
            ("message" | "", "user") => {
                self.say(Message::User(UserMessage::new(parts("content")).with_raw(raw)));
            }
            ("message" | "", "system" | "developer") => {
                self.say(Message::System(SystemMessage::new(parts("content")).with_raw(raw)));
            }
            ("function_call_output" | "custom_tool_call_output" | "computer_call_output", _) => {
                match self.unanswered(&text("call_id")) {
                    Some((call, result)) => {
                        let (id, name) = (call.id.clone(), call.name.clone());
                        *result = Some(ToolMessage::new(id, name, parts("output").into(), false).with_raw(raw));
                        self.is_answered = true;
                    }
                    None => self.say_other(raw),
                }
            }
            ("message" | "", "assistant")
            | ("reasoning" | "mcp_list_tools" | "mcp_approval_request" | "compaction", _) => self.go_on(json),
            ("tool_search_output", _) if &*text("execution") == "server" => self.go_on(json),
            (kind, _) if kind.ends_with("_call") => self.go_on(json),
            _ => self.say_other(raw),
        }
    }

    /// Continues the model's turn, or begins another.
    fn go_on(&mut self, json: &'a RawValue) {
        if self.is_answered {
            self.close();
        }
        self.items.push(json);
        self.blocks.extend(read_item(json, &self.manner.origin).into_iter().map(|block| (json, block, None)));
    }

    /// Adds an item that is not a message, as raw content of the provider.
    fn say_other(&mut self, raw: Raw) {
        self.say(Message::User(UserMessage::new(vec![Part::Other(raw.clone())]).with_raw(raw)));
    }

    fn say(&mut self, message: Message) {
        self.close();
        self.messages.push(message);
    }

    /// Completes the turn.
    fn close(&mut self) {
        let items = take(&mut self.items);
        self.is_answered = false;
        if items.is_empty() {
            return;
        }
        let (mut blocks, mut results) = (Vec::new(), Vec::new());
        for (json, block, result) in take(&mut self.blocks) {
            let is_unanswered = matches!(block, Block::ToolCall(_)) && result.is_none();
            blocks.push(if is_unanswered { Block::Other(raw(json, &self.manner.origin)) } else { block });
            results.extend(result.map(Message::Tool));
        }
        if blocks.is_empty() {
            blocks.extend(items.iter().map(|json| Block::Other(raw(json, &self.manner.origin))));
        }
        let list = Raw::new(self.manner.origin.clone(), to_raw_value(&items).unwrap_or_default());
        self.messages.push(Message::Assistant(AssistantMessage::from_provider(blocks, list)));
        self.messages.append(&mut results);
    }

    /// Returns the open turn's call with this id, and the slot of its result, if it is unanswered.
    fn unanswered(&mut self, id: &str) -> Option<(&ToolCall, &mut Option<ToolMessage>)> {
        let mut calls = self.blocks.iter_mut().filter_map(|(_, block, result)| match block {
            Block::ToolCall(call) if *call.id == *id && !id.is_empty() => Some((&*call, result)),
            _ => None,
        });
        calls.next().filter(|(_, result)| result.is_none())
    }
}

/// Decodes the parts of a content.
fn parts(json: &RawValue, manner: &MessageStyle) -> Vec<Part> {
    let part = |json: &RawValue| read_part(json, &manner.origin, |part| part_json(manner, part));
    serde_json::from_str(json.get()).map_or_else(|_| Vec::new(), |content: Content<'_>| content.parts(part))
}

/// Decodes the settings.
fn params(said: &Map<String, Value>) -> ModelParams {
    let plain = PLAIN.map(|(own, name)| (own, said.get(name).cloned()));
    read_params(plain.into_iter().chain([
        ("parallel_tool_calls", said.get("parallel_tool_calls").cloned()),
        ("effort", said.get("reasoning").map(|reasoning| reasoning["effort"].clone())),
        ("tool_choice", said.get("tool_choice").map(read_choice)),
        ("output", said.get("text").map(|text| read_output(&text["format"]))),
    ]))
}
