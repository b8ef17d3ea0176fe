//! From the items of a request to messages.

use agent_core::{
    AssistantMessage, Block, History, Message, Part, SystemMessage, ToolMessage, UserMessage,
    message::{Origin, Raw},
};
use serde_json::value::RawValue;

use crate::wire::{
    lenient::{Content, Str},
    open_struct::open_struct,
    openai_responses::{
        parts::read_part,
        read::{kind, read},
    },
};

open_struct! {
    ItemSaid {
        content: &'a RawValue = "content",
        call_id: Str<'a> = "call_id",
        output: &'a RawValue = "output",
        execution: Str<'a> = "execution",
    }
}

/// Who an item is from.
enum Author {
    Model,
    Tool,
    User,
    System,
    /// Nobody who says a message: what it is stays its provider's.
    Other,
}

/// The messages of these items. Items of the model that follow each other are one turn.
///
/// All items are kept. Calls without a result, and results without a call, are kept as what is not understood; results that
/// stand in another order than their calls are put in that order.
pub(super) fn turns(items: &[&RawValue], origin: &Origin) -> History {
    let mut reader = Reader { origin, messages: Vec::new(), turn: Turn::default() };
    for json in items {
        reader.push(json);
    }
    reader.close();
    History::import(reader.messages).0
}

#[derive(Default)]
struct Turn<'a> {
    items: Vec<&'a RawValue>,
    blocks: Vec<(&'a RawValue, Block)>,
    results: Vec<ToolMessage>,
}

struct Reader<'a> {
    origin: &'a Origin,
    messages: Vec<Message>,
    turn: Turn<'a>,
}

impl<'a> Reader<'a> {
    fn push(&mut self, json: &'a RawValue) {
        let said: ItemSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
        match author(json, &said) {
            Author::Model => {
                if !self.turn.results.is_empty() {
                    self.close();
                }
                self.turn.items.push(json);
                self.turn.blocks.extend(read(json, self.origin).into_iter().map(|block| (json, block)));
            }
            Author::Tool => match said.call_id.as_ref().and_then(|id| self.turn.unanswered(&id.0)) {
                Some((id, name)) => {
                    let parts = said.output.map(|json| read_parts(json, self.origin)).unwrap_or_default();
                    let result = ToolMessage::new(id, name, parts.into(), false);
                    self.turn.results.push(result.with_raw(self.raw(json)));
                }
                None => self.say(Message::User(self.other(json))),
            },
            Author::User => {
                let parts = said.content.map(|json| read_parts(json, self.origin)).unwrap_or_default();
                self.say(Message::User(UserMessage::new(parts).with_raw(self.raw(json))));
            }
            Author::System => {
                let parts = said.content.map(|json| read_parts(json, self.origin)).unwrap_or_default();
                self.say(Message::System(SystemMessage::new(parts).with_raw(self.raw(json))));
            }
            Author::Other => self.say(Message::User(self.other(json))),
        }
    }

    fn say(&mut self, message: Message) {
        self.close();
        self.messages.push(message);
    }

    /// The turn is complete.
    fn close(&mut self) {
        let Turn { items, blocks, mut results } = std::mem::take(&mut self.turn);
        if items.is_empty() {
            return;
        }
        let mut answered = Vec::new();
        let mut blocks: Vec<Block> = blocks
            .into_iter()
            .map(|(json, block)| match &block {
                Block::ToolCall(call) if results.iter().all(|result| result.call_id() != &*call.id) => {
                    Block::Other(self.raw(json))
                }
                Block::ToolCall(call) if answered.contains(&call.id) => Block::Other(self.raw(json)),
                Block::ToolCall(call) => {
                    answered.push(call.id.clone());
                    block
                }
                _ => block,
            })
            .collect();
        if blocks.is_empty() {
            blocks.extend(items.iter().map(|json| Block::Other(self.raw(json))));
        }
        results.sort_by_key(|result| answered.iter().position(|id| **id == *result.call_id()));
        let list = serde_json::to_string(&items).ok().and_then(|list| RawValue::from_string(list).ok());
        let raw = Raw::new(self.origin.clone(), list.unwrap_or_default());
        self.messages.push(Message::Assistant(AssistantMessage::from_provider(blocks, raw)));
        self.messages.extend(results.into_iter().map(Message::Tool));
    }

    fn other(&self, json: &RawValue) -> UserMessage {
        UserMessage::new(vec![Part::Other(self.raw(json))]).with_raw(self.raw(json))
    }

    fn raw(&self, json: &RawValue) -> Raw {
        Raw::new(self.origin.clone(), json.to_owned())
    }
}

impl Turn<'_> {
    /// The id and the tool of the call that has this id, if no result has answered it.
    fn unanswered(&self, id: &str) -> Option<(std::sync::Arc<str>, std::sync::Arc<str>)> {
        let calls = self.blocks.iter().filter_map(|(_, block)| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        });
        let is_open = !id.is_empty() && self.results.iter().all(|result| result.call_id() != id);
        calls.filter(|_| is_open).find(|call| *call.id == *id).map(|call| (call.id.clone(), call.name.clone()))
    }
}

fn author(json: &RawValue, said: &ItemSaid<'_>) -> Author {
    let (kind, role) = kind(json);
    match (kind.as_str(), role.as_str()) {
        ("message" | "", "assistant") => Author::Model,
        ("message" | "", "user") => Author::User,
        ("message" | "", "system" | "developer") => Author::System,
        ("function_call_output" | "custom_tool_call_output" | "computer_call_output", _) => Author::Tool,
        ("reasoning" | "mcp_list_tools" | "mcp_approval_request" | "compaction", _) => Author::Model,
        ("tool_search_output", _) if said.execution.as_ref().is_some_and(|by| by.0 == "server") => Author::Model,
        (kind, _) if kind.ends_with("_call") => Author::Model,
        _ => Author::Other,
    }
}

/// The parts of a content.
fn read_parts(json: &RawValue, origin: &Origin) -> Vec<Part> {
    match serde_json::from_str(json.get()) {
        Ok(Content::Text(text)) => vec![Part::text(text)],
        Ok(Content::Parts(parts)) => parts.into_iter().map(|json| read_part(json, origin)).collect(),
        Err(_) => Vec::new(),
    }
}
