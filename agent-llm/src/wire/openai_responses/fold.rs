//! Putting the items of an answer together from its events.

use agent_core::{Block, Chunk, message::Origin};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::read::{PARAGRAPH, read};
use crate::wire::{
    blocks::Blocks,
    ids::name_calls,
    json::raw,
    lenient::{kind, lenient},
};

/// What the deltas of an item are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Text,
    Refusal,
    Summary,
    /// Reasoning itself.
    Thought,
    Arguments,
    /// What a tool that takes a text is called with.
    Input,
}

/// Which part of which item an event is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The item's place in the output. It holds even where a server changes an item's id from event to event.
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    /// The part's place among those of its kind.
    pub(super) nth: u64,
}

/// A part of an item under way.
#[derive(Debug)]
struct Part {
    field: Field,
    nth: u64,
    text: String,
    /// The part as it ended.
    json: Option<Box<RawValue>>,
}

/// An item under way.
#[derive(Debug, Default)]
struct Item {
    index: Option<u64>,
    kind: String,
    id: String,
    /// The item as it began.
    begun: Option<Map<String, Value>>,
    parts: Vec<Part>,
    /// The part of the reasoning that listeners heard last.
    thought: Option<(Field, u64)>,
    /// The item as it ended.
    done: Option<Box<RawValue>>,
}

/// The items of an answer under way, in the order in which they began.
///
/// Text and reasoning end when another block begins, calls when their item ends; and at the end of the answer, what was told
/// is made what the message is.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    items: Vec<Item>,
    blocks: Blocks<Key>,
}

/// What a block is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    item: usize,
    /// The text of a message that it is; none if the item is the block.
    text: Option<u64>,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool) -> Self {
        Self { origin, items: Vec::new(), blocks: Blocks::new(is_heard) }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// An item begins.
    pub(super) fn added(&mut self, place: Place<'_>, json: &RawValue, out: &mut Vec<Chunk>) {
        let begun: Map<String, Value> = lenient(json);
        let [kind, id] = ["type", "id"].map(|name| text(&begun, name).to_owned());
        let place = Place { id: if place.id.is_empty() { &id } else { place.id }, ..place };
        // Some servers begin an item twice, others send its deltas first; and there are those that number all alike.
        let known = self.find(place).filter(|at| {
            let known = &self.items[*at];
            known.done.is_none() && (known.begun.is_none() || known.id == id)
        });
        let at = known.unwrap_or_else(|| self.push(place.index));
        let item = &mut self.items[at];
        (item.kind, item.id, item.begun) = (kind, id, Some(begun));
        match &*item.kind {
            // It has its place, even if nobody can read it.
            "reasoning" => {
                let key = self.begin(Key { item: at, text: None }, out);
                self.blocks.reasoning(key, "", out);
            }
            "function_call" | "custom_tool_call" => self.tell_call(at, out),
            _ => {}
        }
    }

    /// More of an item, unless it has ended.
    pub(super) fn more(&mut self, place: Place<'_>, field: Field, text: &str, out: &mut Vec<Chunk>) {
        let Some(at) = self.open(place, field) else { return };
        let (item, nth) = (&mut self.items[at], place.nth);
        item.part_mut(field, nth).text.push_str(text);
        if text.is_empty() {
            return;
        }
        match field {
            Field::Text => {
                let key = self.begin(Key { item: at, text: Some(nth) }, out);
                self.blocks.text(key, text, out);
            }
            Field::Summary | Field::Thought => {
                let before = item.thought.replace((field, nth));
                let space = if before.is_some_and(|before| before != (field, nth)) { PARAGRAPH } else { "" };
                let key = self.begin(Key { item: at, text: None }, out);
                self.blocks.reasoning(key, &format!("{space}{text}"), out);
            }
            Field::Arguments | Field::Input => self.tell_call(at, out),
            Field::Refusal => {} // told whole, when its item ends
        }
    }

    /// The whole text of a part: what was left out of its deltas is more of the item.
    pub(super) fn whole(&mut self, place: Place<'_>, field: Field, whole: &str, out: &mut Vec<Chunk>) {
        let Some(at) = self.open(place, field) else { return };
        if let Some(rest) = whole.strip_prefix(self.items[at].part_mut(field, place.nth).text.as_str()) {
            self.more(place, field, rest, out);
        }
    }

    /// A call is told of once its name and its id are known.
    fn tell_call(&mut self, at: usize, out: &mut Vec<Chunk>) {
        let (key, item) = (Key { item: at, text: None }, &self.items[at]);
        let said = |name| item.begun.as_ref().map(|begun| text(begun, name)).unwrap_or_default().to_owned();
        let (id, name) = (said("call_id"), said("name"));
        if id.is_empty() || name.is_empty() {
            return;
        }
        self.begin(key, out);
        self.blocks.call(key, &id, &name, out);
        let item = &self.items[at];
        let field = if item.kind == "custom_tool_call" { Field::Input } else { Field::Arguments };
        let rest = item.text(field).get(self.blocks.said(key).len()..).unwrap_or_default();
        self.blocks.arguments(key, rest, out);
    }

    /// A block begins, unless it has: the text or reasoning before it ends. Items before it have their places, if all they
    /// can be is one block.
    fn begin(&mut self, key: Key, out: &mut Vec<Chunk>) -> Key {
        if !self.blocks.has(key) {
            for (at, item) in self.items.iter().enumerate().take(key.item) {
                let own = Key { item: at, text: None };
                if let Some(json) = item.opaque().filter(|_| !self.blocks.has(own)) {
                    let block = read(&json, &self.origin).pop();
                    self.blocks.settle(own, block.unwrap_or_else(|| Block::Other(raw(&json, &self.origin))), out);
                }
            }
            self.blocks.turn_to(key, out);
        }
        key
    }

    /// A part of a message or of reasoning ends.
    pub(super) fn part_done(&mut self, place: Place<'_>, json: &RawValue) {
        let field = match &*kind(json) {
            "reasoning_text" => Field::Thought,
            "refusal" => Field::Refusal,
            _ => Field::Text,
        };
        if let Some(at) = self.open(place, field) {
            self.items[at].part_mut(field, place.nth).json = Some(json.to_owned());
        }
    }

    /// An item ends. `response` is the id of the answer.
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
        self.settle(at, blocks, out);
    }

    /// What was told of the item becomes these blocks, in order.
    fn settle(&mut self, at: usize, blocks: Vec<Block>, out: &mut Vec<Chunk>) {
        let told: Vec<Key> = self.blocks.keys().filter(|key| key.item == at).collect();
        // What was not told yet is a block beside the texts.
        let more = (0..).map(|nth| Key { item: at, text: Some(u64::MAX - nth) });
        let whole = Key { item: at, text: None };
        let keys = told.iter().copied().chain([whole].into_iter().filter(|key| !told.contains(key))).chain(more);
        for (key, block) in keys.zip(blocks) {
            self.begin(key, out);
            self.blocks.settle(key, block, out);
        }
    }

    /// Ends the answer, which has these blocks.
    pub(super) fn finish(self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.blocks.finish(blocks, out)
    }

    /// The items as a list, as it would have come whole.
    pub(super) fn output(&self) -> Box<RawValue> {
        let mut items: Vec<_> = self.items.iter().collect();
        items.sort_by_key(|item| item.index.unwrap_or(u64::MAX));
        let all: Vec<_> = items.into_iter().filter_map(Item::json).collect();
        to_raw_value(&all).unwrap_or_default()
    }

    /// The item that a delta goes on with; a new one if there is none. None if the item has ended.
    fn open(&mut self, place: Place<'_>, field: Field) -> Option<usize> {
        match self.find(place) {
            Some(at) if self.items[at].done.is_none() => Some(at),
            Some(at) if place.id.is_empty() || place.id == self.items[at].id => None,
            _ => {
                let at = self.push(place.index);
                (self.items[at].kind, self.items[at].id) = (field.place().0.to_owned(), place.id.to_owned());
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

/// Of each field: what its events are called, which items have it and where, and what its parts are.
const FIELDS: [(Field, &str, &str, &str, &str); 6] = [
    (Field::Text, "response.output_text", "message", "content", "output_text"),
    (Field::Refusal, "response.refusal", "message", "content", "refusal"),
    (Field::Summary, "response.reasoning_summary_text", "reasoning", "summary", "summary_text"),
    (Field::Thought, "response.reasoning_text", "reasoning", "content", "reasoning_text"),
    (Field::Arguments, "response.function_call_arguments", "function_call", "arguments", ""),
    (Field::Input, "response.custom_tool_call_input", "custom_tool_call", "input", ""),
];

impl Field {
    /// What the events that are called so are of.
    pub(super) fn of(event: &str) -> Option<Self> {
        FIELDS.iter().find(|(_, known, ..)| *known == event).map(|(field, ..)| *field)
    }

    /// The type of the items that have it, their field for it, and the type of its parts: empty if it is a text alone.
    fn place(self) -> (&'static str, &'static str, &'static str) {
        let row = FIELDS.iter().find(|(field, ..)| *field == self);
        row.map_or_else(Default::default, |(_, _, item, place, part)| (*item, *place, *part))
    }
}

impl Item {
    /// What a call is called with so far.
    fn text(&self, field: Field) -> &str {
        self.parts.iter().find(|part| part.field == field).map_or("", |part| &part.text)
    }

    /// The item as it began, if it has not ended, and is of a kind that is kept as it is.
    fn opaque(&self) -> Option<Box<RawValue>> {
        let known = ["", "message", "reasoning", "function_call", "custom_tool_call", "image_generation_call"];
        let begun = self.begun.as_ref().filter(|_| self.done.is_none() && !known.contains(&&*self.kind))?;
        to_raw_value(begun).ok()
    }

    fn part_mut(&mut self, field: Field, nth: u64) -> &mut Part {
        let nth = if field.place().2.is_empty() { 0 } else { nth };
        let known = self.parts.iter().rposition(|part| (part.field, part.nth) == (field, nth));
        let at = known.unwrap_or_else(|| {
            self.parts.push(Part { field, nth, text: String::new(), json: None });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }

    /// The item as it ended; put together from its deltas if nobody said how that was. None if it said nothing.
    fn json(&self) -> Option<Box<RawValue>> {
        if self.done.is_some() {
            return self.done.clone();
        }
        let mut item = self.begun.clone().unwrap_or_default();
        if self.parts.is_empty() {
            return to_raw_value(&item).ok().filter(|_| !matches!(&*self.kind, "" | "message"));
        }
        item.entry("type").or_insert(self.kind.as_str().into());
        if self.kind == "message" {
            item.entry("role").or_insert("assistant".into());
        }
        if text(&item, "status") == "in_progress" {
            item.insert("status".into(), "completed".into());
        }
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|part| part.nth);
        let mut said = Map::new();
        for part in parts {
            let (_, place, kind) = part.field.place();
            let known = said.entry(place).or_insert_with(|| json!([]));
            match known {
                Value::Array(parts) if !kind.is_empty() => parts.push(part.to_value(kind)),
                text => *text = part.text.as_str().into(),
            }
        }
        said.retain(|_, value| *value != "");
        item.append(&mut said);
        to_raw_value(&item).ok()
    }
}

impl Part {
    fn to_value(&self, kind: &str) -> Value {
        let text = self.text.as_str();
        match (&self.json, self.field) {
            (Some(json), _) => lenient(json),
            (None, Field::Refusal) => json!({"type": kind, "refusal": text}),
            (None, Field::Text) => json!({"type": kind, "annotations": [], "text": text}),
            (None, _) => json!({"type": kind, "text": text}),
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}
