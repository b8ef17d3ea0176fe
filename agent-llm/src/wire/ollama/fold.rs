//! Accumulates a message of the model from pieces; a non-streamed message is a single piece.

use agent_core::{
    AssistantMessage, Block, Chunk, ToolCall,
    message::{Origin, Raw},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::encode::{CallJson, Turn};
use crate::wire::{
    blocks::Blocks,
    content::push_arguments,
    details::parse,
    ids::{NAMELESS, call_id},
    lenient::Str,
    merge::merge_field,
    open_struct::open_struct,
};

open_struct! {
    /// A message, or a piece of one.
    Said {
        content: Str<'a> = "content",
        thinking: Str<'a> = "thinking",
        tool_calls: Vec<&'a RawValue> = "tool_calls",
    }
}

open_struct! {
    Called { id: Str<'a> = "id", _kind: Str<'a> = "type", function: Function<'a> = "function", }
}

open_struct! {
    Function { name: Str<'a> = "name", arguments: &'a RawValue = "arguments", }
}

/// A message in progress.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) origin: Origin,
    blocks: Blocks<Key>,
    /// Fields other than text, reasoning and calls.
    rest: Map<String, Value>,
    calls: Vec<Box<RawValue>>,
}

/// Part of a message that a block comes from. Calls arrive whole, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Thinking,
    Content,
    Call(usize),
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        let blocks = Blocks::new(is_heard);
        Self { origin, blocks, rest: Map::new(), calls: Vec::new() }
    }

    /// Adds a piece of the message. Ids for calls without one are derived from `answer`, the id of
    /// the answer.
    pub(super) fn push(&mut self, json: &RawValue, answer: &str, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let Said { content, thinking, tool_calls, rest } = serde_json::from_str(json.get())?;
        if let Some(thought) = thinking.filter(|thought| !thought.is_empty()) {
            self.blocks.turn_to(Key::Thinking, out);
            self.blocks.reasoning(Key::Thinking, &thought.0, out);
        }
        if let Some(text) = content.filter(|text| !text.is_empty()) {
            self.blocks.turn_to(Key::Content, out);
            self.blocks.text(Key::Content, &text.0, out);
        }
        for json in tool_calls.unwrap_or_default() {
            let at = self.calls.len();
            let call = call(json, &self.origin, || call_id(answer, at))?;
            self.blocks.turn_to(Key::Call(at), out);
            self.blocks.settle(Key::Call(at), Block::ToolCall(call), out);
            self.calls.push(json.to_owned());
        }
        for (name, json) in rest {
            if let Some(value) = parse(json) {
                merge_field(&mut self.rest, name.0.into_owned(), value);
            }
        }
        Ok(())
    }

    /// Returns the other fields of the message; its role at least.
    pub(super) fn rest(&self) -> Map<String, Value> {
        let mut rest = self.rest.clone();
        rest.entry("role").or_insert_with(|| "assistant".into());
        rest
    }

    /// Returns the message as in a non-streamed response.
    pub(super) fn json(&self) -> Box<RawValue> {
        let turn = Turn {
            rest: self.rest(),
            content: self.blocks.said(Key::Content).into(),
            thinking: self.blocks.said(Key::Thinking).into(),
            tool_calls: self.calls.iter().map(|call| CallJson::Raw(call)).collect(),
        };
        to_raw_value(&turn).expect("its keys are texts")
    }

    /// Ends the message, whose JSON is `json`. If its only content is unknown, that JSON becomes
    /// its block.
    pub(super) fn finish(self, json: Box<RawValue>, out: &mut Vec<Chunk>) -> AssistantMessage {
        let raw = Raw::new(self.origin, json);
        let mut blocks: Vec<Block> = self.blocks.iter().cloned().collect();
        let is_said = |(name, value): (&String, &Value)| name != "role" && (value.is_array() || value.is_object());
        if blocks.is_empty() && self.rest.iter().any(is_said) {
            blocks.push(Block::Other(raw.clone()));
        }
        AssistantMessage::from_provider(self.blocks.finish(blocks, out), raw)
    }
}

/// Decodes one call; it keeps its JSON if that contains more. Old servers send no ids.
pub(super) fn call(json: &RawValue, origin: &Origin, id: impl FnOnce() -> String) -> serde_json::Result<ToolCall> {
    let said: Called<'_> = serde_json::from_str(json.get())?;
    let function = said.function.unwrap_or_default();
    let says_more = !(said.rest.is_empty() && function.rest.is_empty());
    let mut arguments = String::new();
    function.arguments.map_or(Ok(()), |json| push_arguments(json, &mut arguments))?;
    Ok(ToolCall {
        id: said.id.filter(|id| !id.is_empty()).map_or_else(id, |id| id.0.into_owned()).into(),
        name: function.name.filter(|name| !name.is_empty()).map_or(NAMELESS.into(), |name| name.0.into()),
        arguments,
        raw: says_more.then(|| Raw::new(origin.clone(), json.to_owned())),
    })
}
