//! Accumulates the items of an answer from events.

use std::collections::BTreeMap;

use agent_core::{Block, Chunk, message::Origin};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::read::{PARAGRAPH, read};
use crate::wire::{blocks::Blocks, ids::name_calls, json::raw, lenient::lenient, merge::merge};

/// Kind of content in an item's deltas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Type of the items, and their field for this content.
    item: &'static str,
    place: &'static str,
    /// Type of the content's parts; empty if it is a plain text.
    part: &'static str,
}

impl Field {
    /// Returns the kind of content for an event type.
    pub(super) fn of(event: &str) -> Option<Self> {
        let (item, place, part) = match event.strip_prefix("response.")? {
            "output_text" => ("message", "content", "output_text"),
            "refusal" => ("message", "content", "refusal"),
            "reasoning_summary_text" => ("reasoning", "summary", "summary_text"),
            "reasoning_text" => ("reasoning", "content", "reasoning_text"),
            "function_call_arguments" => ("function_call", "arguments", ""),
            "custom_tool_call_input" => ("custom_tool_call", "input", ""),
            _ => return None,
        };
        Some(Self { item, place, part })
    }

    /// Returns an empty part.
    fn nothing(self) -> Value {
        match self.part {
            "" => json!(""),
            "refusal" => json!({"type": "refusal", "refusal": ""}),
            "output_text" => json!({"type": "output_text", "annotations": [], "text": ""}),
            kind => json!({"type": kind, "text": ""}),
        }
    }
}

/// Part of an item that an event refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Index of the item in the output. It holds even if a server changes an item's id between
    /// events.
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    /// Index of the part among those of its kind.
    pub(super) nth: u64,
}

/// An item in progress.
#[derive(Debug, Default)]
struct Item {
    index: Option<u64>,
    kind: String,
    id: String,
    /// Fields of its first event; empty until then.
    begun: Map<String, Value>,
    /// Content so far, by field and index.
    parts: BTreeMap<(&'static str, u64), Value>,
    /// Final JSON of the item.
    done: Option<Box<RawValue>>,
}

/// Items of a streamed answer, in the order in which they began.
///
/// Text and reasoning end when another block begins, calls when their item ends. At the end of the
/// answer, the emitted chunks are aligned with the message.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    items: Vec<Item>,
    blocks: Blocks<Key>,
}

/// Source of a block: an item, and the index of a text in it. An item with a single block uses 0.
type Key = (usize, u64);

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self { origin, items: Vec::new(), blocks: Blocks::new(is_heard) }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Begins an item.
    pub(super) fn added(&mut self, place: Place<'_>, json: &RawValue, out: &mut Vec<Chunk>) {
        let begun: Map<String, Value> = lenient(json);
        let [kind, id] = ["type", "id"].map(|name| text(&begun, name).to_owned());
        let place = Place { id: if place.id.is_empty() { &id } else { place.id }, ..place };
        // Some servers begin an item twice, others send its deltas first, and some use one index
        // for all items.
        let known = self.find(place).filter(|at| {
            let known = &self.items[*at];
            known.done.is_none() && (known.begun.is_empty() || known.id == id)
        });
        let at = known.unwrap_or_else(|| self.push(place.index));
        let item = &mut self.items[at];
        (item.kind, item.id, item.begun) = (kind, id, begun);
        match &*item.kind {
            // Reasoning becomes a block even if it is unreadable.
            "reasoning" => {
                let key = self.begin((at, 0), out);
                self.blocks.reasoning(key, "", out);
            }
            "function_call" | "custom_tool_call" => self.tell_call(at, out),
            _ => {}
        }
    }

    /// Applies a delta to an item, unless it has ended.
    pub(super) fn more(&mut self, place: Place<'_>, field: Field, more: &str, out: &mut Vec<Chunk>) {
        let Some(at) = self.open(place, field.item) else { return };
        let text = self.items[at].text_mut(field, place.nth);
        let is_first = *text == "";
        merge(text, more.into());
        if more.is_empty() {
            return;
        }
        match field.item {
            "message" if field.part == "refusal" => {} // emitted as a whole, when its item ends
            "message" => {
                let key = self.begin((at, place.nth), out);
                self.blocks.text(key, more, out);
            }
            "reasoning" => {
                let key = self.begin((at, 0), out);
                let space = if is_first && !self.blocks.said(key).is_empty() { PARAGRAPH } else { "" };
                self.blocks.reasoning(key, &format!("{space}{more}"), out);
            }
            _ => self.tell_call(at, out),
        }
    }

    /// Applies the complete text of a part: text missing from its deltas is appended.
    pub(super) fn whole(&mut self, place: Place<'_>, field: Field, whole: &str, out: &mut Vec<Chunk>) {
        let Some(at) = self.open(place, field.item) else { return };
        let known = self.items[at].text_mut(field, place.nth).as_str().unwrap_or_default();
        if let Some(rest) = whole.strip_prefix(known) {
            self.more(place, field, rest, out);
        }
    }

    /// Emits a call once its name and its id are known.
    fn tell_call(&mut self, at: usize, out: &mut Vec<Chunk>) {
        let [id, name] = ["call_id", "name"].map(|name| text(&self.items[at].begun, name).to_owned());
        if id.is_empty() || name.is_empty() {
            return;
        }
        let key = self.begin((at, 0), out);
        self.blocks.call(key, &id, &name, out);
        let arguments = self.items[at].parts.values().find_map(Value::as_str).unwrap_or_default();
        let rest = arguments.get(self.blocks.said(key).len()..).unwrap_or_default();
        self.blocks.arguments(key, rest, out);
    }

    /// Begins a block, unless it has begun: the text or reasoning before it ends. Earlier items
    /// that are a single block keep their index.
    fn begin(&mut self, key: Key, out: &mut Vec<Chunk>) -> Key {
        if !self.blocks.has(key) {
            for (at, item) in self.items.iter().enumerate().take(key.0) {
                if let Some(json) = item.opaque().filter(|_| !self.blocks.has((at, 0))) {
                    let block = read(&json, &self.origin).pop();
                    self.blocks.settle((at, 0), block.unwrap_or_else(|| Block::Other(raw(&json, &self.origin))), out);
                }
            }
            self.blocks.turn_to(key, out);
        }
        key
    }

    /// Ends a part of a message or of reasoning.
    pub(super) fn part_done(&mut self, place: Place<'_>, json: &RawValue) {
        let part: Map<String, Value> = lenient(json);
        let item = if text(&part, "type") == "reasoning_text" { "reasoning" } else { "message" };
        if let Some(at) = self.open(place, item) {
            self.items[at].parts.insert(("content", place.nth), part.into());
        }
    }

    /// Ends an item and its blocks, in order. `response` is the id of the answer.
    pub(super) fn done(&mut self, place: Place<'_>, json: &RawValue, response: &str, out: &mut Vec<Chunk>) {
        let said: Map<String, Value> = lenient(json);
        let [kind, id] = ["type", "id"].map(|name| text(&said, name).to_owned());
        let known = self.find(place).filter(|at| self.items[*at].done.is_none() || self.items[*at].id == id);
        let at = known.unwrap_or_else(|| self.push(place.index));
        let item = &mut self.items[at];
        (item.kind, item.id, item.done) = (kind, id, Some(json.to_owned()));
        let mut blocks = read(json, &self.origin);
        let is_call = |item: &&Item| matches!(&*item.kind, "function_call" | "custom_tool_call");
        name_calls(&mut blocks, response, self.items[..at].iter().filter(is_call).count());
        let told = self.blocks.keys().filter(|key| key.0 == at);
        let untold = (0..).map(|nth| (at, nth)).filter(|key| !self.blocks.has(*key));
        let keys: Vec<Key> = told.chain(untold).take(blocks.len()).collect();
        for (key, block) in keys.into_iter().zip(blocks) {
            self.begin(key, out);
            self.blocks.settle(key, block, out);
        }
    }

    /// Ends the answer, with these final blocks.
    pub(super) fn finish(self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.blocks.finish(blocks, out)
    }

    /// Returns the items as a list, as in a non-streamed response.
    pub(super) fn output(&self) -> Box<RawValue> {
        let mut items: Vec<_> = self.items.iter().collect();
        items.sort_by_key(|item| item.index.unwrap_or(u64::MAX));
        let all: Vec<_> = items.into_iter().filter_map(Item::json).collect();
        to_raw_value(&all).unwrap_or_default()
    }

    /// Returns the item that a delta belongs to, creating one if necessary; `None` if the item has
    /// ended.
    fn open(&mut self, place: Place<'_>, kind: &str) -> Option<usize> {
        match self.find(place) {
            Some(at) if self.items[at].done.is_none() => Some(at),
            Some(at) if place.id.is_empty() || place.id == self.items[at].id => None,
            _ => {
                let at = self.push(place.index);
                (self.items[at].kind, self.items[at].id) = (kind.to_owned(), place.id.to_owned());
                Some(at)
            }
        }
    }

    fn find(&self, place: Place<'_>) -> Option<usize> {
        match place.index {
            Some(index) => self.items.iter().rposition(|item| item.index == Some(index)),
            None if place.id.is_empty() => self.items.len().checked_sub(1),
            None => self.items.iter().rposition(|item| item.id == place.id),
        }
    }

    fn push(&mut self, index: Option<u64>) -> usize {
        self.items.push(Item { index, ..Item::default() });
        self.items.len() - 1
    }
}

impl Item {
    /// Returns the text of a part so far.
    fn text_mut(&mut self, field: Field, nth: u64) -> &mut Value {
        let nth = if field.part.is_empty() { 0 } else { nth };
        let part = self.parts.entry((field.place, nth)).or_insert_with(|| field.nothing());
        match field.part {
            "" => part,
            "refusal" => &mut part["refusal"],
            _ => &mut part["text"],
        }
    }

    /// Returns the JSON of the item's start, if it has not ended, and its kind is kept unchanged.
    fn opaque(&self) -> Option<Box<RawValue>> {
        let known = ["", "message", "reasoning", "function_call", "custom_tool_call", "image_generation_call"];
        let is_opaque = self.done.is_none() && !self.begun.is_empty() && !known.contains(&&*self.kind);
        is_opaque.then(|| to_raw_value(&self.begun).unwrap_or_default())
    }

    /// Returns the final JSON of the item, assembled from deltas if the server sent none; `None` if
    /// the item is empty.
    fn json(&self) -> Option<Box<RawValue>> {
        if self.done.is_some() {
            return self.done.clone();
        }
        if self.parts.is_empty() {
            return to_raw_value(&self.begun).ok().filter(|_| !matches!(&*self.kind, "" | "message"));
        }
        let mut item = self.begun.clone();
        item.entry("type").or_insert(self.kind.as_str().into());
        if self.kind == "message" {
            item.entry("role").or_insert("assistant".into());
        }
        if text(&item, "status") == "in_progress" {
            item.insert("status".into(), "completed".into());
        }
        let mut said = Map::new();
        for ((place, _), part) in &self.parts {
            let part = if part.is_string() { part.clone() } else { json!([part]) };
            merge(said.entry(*place).or_insert(Value::Null), part);
        }
        said.retain(|_, value| *value != "");
        item.append(&mut said);
        to_raw_value(&item).ok()
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}
