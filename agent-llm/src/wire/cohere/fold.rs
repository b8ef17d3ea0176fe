//! Accumulates a message from events, in the shape of a non-streamed response.

use std::collections::BTreeMap;

use agent_core::{Block, Chunk};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::wire::{
    blocks::Blocks,
    merge::{merge, merge_fields},
};

/// A message in progress.
#[derive(Debug)]
pub(super) struct Fold {
    blocks: Blocks<Key>,
    /// Fields of the first event.
    begun: Map<String, Value>,
    content: BTreeMap<u64, Value>,
    calls: BTreeMap<u64, Value>,
    citations: Vec<Value>,
}

/// Part of a message that a block comes from; contents and calls have indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Plan,
    Content(u64),
    Call(u64),
}

impl Fold {
    pub(super) fn new(is_heard: bool) -> Self {
        Self {
            blocks: Blocks::new(is_heard),
            begun: Map::new(),
            content: BTreeMap::new(),
            calls: BTreeMap::new(),
            citations: Vec::new(),
        }
    }

    /// Applies an event of this `kind` to the message.
    pub(super) fn push(&mut self, kind: &str, index: u64, message: Value, out: &mut Vec<Chunk>) {
        let Value::Object(mut message) = message else { return };
        let mut take = |name: &str| message.remove(name).unwrap_or_default();
        match kind {
            "content-start" | "content-delta" => self.say(index, take("content"), out),
            "tool-plan-delta" => self.plan(&take("tool_plan"), out),
            "tool-call-start" | "tool-call-delta" => self.call(index, take("tool_calls"), out),
            "citation-start" => match take("citations") {
                Value::Array(citations) => self.citations.extend(citations),
                Value::Null => {}
                citation => self.citations.push(citation),
            },
            "message-start" => merge_fields(&mut self.begun, message),
            _ => {}
        }
    }

    fn say(&mut self, index: u64, more: Value, out: &mut Vec<Chunk>) {
        let key = Key::Content(index);
        if let Some(thought) = more["thinking"].as_str() {
            self.blocks.turn_to(key, out);
            self.blocks.reasoning(key, thought, out);
        } else if let Some(text) = more["text"].as_str().filter(|text| !text.is_empty()) {
            self.blocks.turn_to(key, out);
            self.blocks.text(key, text, out);
        }
        merge(self.content.entry(index).or_default(), more);
    }

    fn plan(&mut self, more: &Value, out: &mut Vec<Chunk>) {
        if let Some(more) = more.as_str().filter(|more| !more.is_empty()) {
            self.blocks.turn_to(Key::Plan, out);
            self.blocks.reasoning(Key::Plan, more, out);
        }
    }

    /// Applies an event of a call, which is emitted once its name and its id are known.
    fn call(&mut self, index: u64, more: Value, out: &mut Vec<Chunk>) {
        let (key, call) = (Key::Call(index), self.calls.entry(index).or_default());
        merge(call, more);
        let text = |at: &str| call.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (text("/id"), text("/function/name"));
        if !self.blocks.has(key) && !id.is_empty() && !name.is_empty() {
            self.blocks.turn_to(key, out);
            self.blocks.call(key, id, name, out);
        }
        if self.blocks.has(key) {
            let told = self.blocks.said(key).len();
            self.blocks.arguments(key, text("/function/arguments").get(told..).unwrap_or_default(), out);
        }
    }

    /// Returns the message as in a non-streamed response, without empty fields.
    ///
    /// # Errors
    /// Only in case of a bug: its keys are strings and its numbers finite.
    pub(super) fn json(&self) -> serde_json::Result<Box<RawValue>> {
        let mut message = self.begun.clone();
        let list = |items: &BTreeMap<u64, Value>| Value::Array(items.values().cloned().collect());
        for (name, value) in [
            ("content", list(&self.content)),
            ("tool_plan", self.blocks.said(Key::Plan).into()),
            ("tool_calls", list(&self.calls)),
            ("citations", self.citations.clone().into()),
        ] {
            if !is_nothing(&value) {
                message.insert(name.into(), value);
            }
        }
        message.retain(|_, value| !is_nothing(value));
        message.entry("role").or_insert("assistant".into());
        to_raw_value(&message)
    }

    /// Ends the message, which was decoded into `blocks`.
    pub(super) fn finish(self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.blocks.finish(blocks, out)
    }
}

fn is_nothing(value: &Value) -> bool {
    value == "" || value.as_array().is_some_and(Vec::is_empty)
}
