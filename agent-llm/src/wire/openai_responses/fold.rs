//! Putting the items of an answer together from its events.

use agent_core::{Block, Chunk, message::Origin};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    events::Place,
    read::{PARAGRAPH, name_calls, read, read_one},
};
use crate::wire::{blocks::Blocks, lenient::Str, open_struct::open_struct};

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

/// A part of an item under way.
#[derive(Debug)]
struct Part {
    field: Field,
    nth: u64,
    text: String,
    /// The part as it ended.
    json: Option<Box<RawValue>>,
}

open_struct! {
    HeadSaid {
        kind: Str<'a> = "type",
        id: Str<'a> = "id",
        call_id: Str<'a> = "call_id",
        name: Str<'a> = "name",
    }
}

/// What is known of an item from the start.
#[derive(Debug, Default)]
struct Head {
    kind: String,
    id: String,
    call_id: String,
    name: String,
    json: Option<Box<RawValue>>,
}

/// An item under way.
#[derive(Debug, Default)]
struct Item {
    index: Option<u64>,
    head: Head,
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

impl Head {
    fn read(json: &RawValue) -> Self {
        let said: HeadSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
        let text = |said: Option<Str<'_>>| said.map(|said| said.0.into_owned()).unwrap_or_default();
        Self {
            kind: text(said.kind),
            id: text(said.id),
            call_id: text(said.call_id),
            name: text(said.name),
            json: Some(json.to_owned()),
        }
    }
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
        let head = Head::read(json);
        let place = Place { id: if place.id.is_empty() { &head.id } else { place.id }, ..place };
        // Some servers begin an item twice, others send its deltas first; and there are those that number all alike.
        let begun = self.find(place).filter(|at| {
            let known = &self.items[*at];
            known.done.is_none() && (known.head.json.is_none() || known.head.id == head.id)
        });
        let at = begun.unwrap_or_else(|| self.push(place.index));
        self.items[at].head = head;
        match &*self.items[at].head.kind {
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
    pub(super) fn more(&mut self, place: Place<'_>, field: Field, nth: u64, text: &str, out: &mut Vec<Chunk>) {
        let Some(at) = self.open(place, field) else { return };
        let part = self.items[at].part_mut(field, nth);
        self.items[at].parts[part].text.push_str(text);
        if text.is_empty() {
            return;
        }
        match field {
            Field::Text => {
                let key = self.begin(Key { item: at, text: Some(nth) }, out);
                self.blocks.text(key, text, out);
            }
            Field::Summary | Field::Thought => {
                let key = self.begin(Key { item: at, text: None }, out);
                let before = self.items[at].thought.replace((field, nth));
                let space = if before.is_some_and(|before| before != (field, nth)) { PARAGRAPH } else { "" };
                self.blocks.reasoning(key, &format!("{space}{text}"), out);
            }
            Field::Arguments | Field::Input => self.tell_call(at, out),
            Field::Refusal => {} // told whole, when its item ends
        }
    }

    /// A call is told of once its name and its id are known.
    fn tell_call(&mut self, at: usize, out: &mut Vec<Chunk>) {
        let (key, head) = (Key { item: at, text: None }, &self.items[at].head);
        if head.call_id.is_empty() || head.name.is_empty() {
            return;
        }
        self.begin(key, out);
        let item = &self.items[at];
        self.blocks.call(key, &item.head.call_id, &item.head.name, out);
        let field = if item.head.kind == "custom_tool_call" { Field::Input } else { Field::Arguments };
        let rest = item.text(field, 0).get(self.blocks.said(key).len()..).unwrap_or_default();
        self.blocks.arguments(key, rest, out);
    }

    /// A block begins, unless it has: the text or reasoning before it ends. Items before it have their places, if all they
    /// can be is one block.
    fn begin(&mut self, key: Key, out: &mut Vec<Chunk>) -> Key {
        if !self.blocks.has(key) {
            for (at, item) in self.items.iter().enumerate().take(key.item) {
                let own = Key { item: at, text: None };
                if let Some(json) = item.opaque().filter(|_| !self.blocks.has(own)) {
                    self.blocks.settle(own, read_one(json, &self.origin), out);
                }
            }
            self.blocks.turn_to(key, out);
        }
        key
    }

    /// What was left out of the deltas of a part, whose whole text this is.
    pub(super) fn left_out<'t>(&mut self, place: Place<'_>, field: Field, nth: u64, whole: &'t str) -> Option<&'t str> {
        let at = self.open(place, field)?;
        let part = self.items[at].part_mut(field, nth);
        whole.strip_prefix(self.items[at].parts[part].text.as_str()).filter(|rest| !rest.is_empty())
    }

    /// A part of a message or of reasoning ends.
    pub(super) fn part_done(&mut self, place: Place<'_>, nth: u64, json: &RawValue) {
        let said: HeadSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
        let field = match said.kind.as_ref().map(|kind| &*kind.0) {
            Some("reasoning_text") => Field::Thought,
            Some("refusal") => Field::Refusal,
            _ => Field::Text,
        };
        if let Some(at) = self.open(place, field) {
            let part = self.items[at].part_mut(field, nth);
            self.items[at].parts[part].json = Some(json.to_owned());
        }
    }

    /// An item ends. `response` is the id of the answer.
    pub(super) fn done(&mut self, place: Place<'_>, json: &RawValue, response: &str, out: &mut Vec<Chunk>) {
        let head = Head::read(json);
        let known = self.find(place).filter(|at| self.items[*at].done.is_none() || self.items[*at].head.id == head.id);
        let at = known.unwrap_or_else(|| self.push(place.index));
        let item = &mut self.items[at];
        item.head = Head { json: None, ..head };
        item.done = Some(json.to_owned());
        let mut blocks = read(json, &self.origin);
        let is_call = |item: &&Item| matches!(&*item.head.kind, "function_call" | "custom_tool_call");
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
        let all: Vec<String> = items.into_iter().filter_map(Item::json).collect();
        RawValue::from_string(format!("[{}]", all.join(","))).unwrap_or_default()
    }

    /// The item that a delta goes on with; a new one if there is none. None if the item has ended.
    fn open(&mut self, place: Place<'_>, field: Field) -> Option<usize> {
        match self.find(place) {
            Some(at) if self.items[at].done.is_none() => Some(at),
            Some(at) if place.id.is_empty() || place.id == self.items[at].head.id => None,
            _ => {
                let at = self.push(place.index);
                field.kind().clone_into(&mut self.items[at].head.kind);
                place.id.clone_into(&mut self.items[at].head.id);
                Some(at)
            }
        }
    }

    fn find(&self, place: Place<'_>) -> Option<usize> {
        match place.index {
            Some(index) => self.items.iter().rposition(|item| item.index == Some(index)),
            None if place.id.is_empty() => self.items.len().checked_sub(1),
            None => self.items.iter().rposition(|item| item.head.id == place.id),
        }
    }

    fn push(&mut self, index: Option<u64>) -> usize {
        self.items.push(Item { index, ..Item::default() });
        self.items.len() - 1
    }
}

impl Field {
    /// The type of the items that have it.
    fn kind(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "message",
            Self::Summary | Self::Thought => "reasoning",
            Self::Arguments => "function_call",
            Self::Input => "custom_tool_call",
        }
    }
}

impl Item {
    /// The text of a part so far.
    fn text(&self, field: Field, nth: u64) -> &str {
        self.parts.iter().find(|part| (part.field, part.nth) == (field, nth)).map_or("", |part| &part.text)
    }

    /// The item as it began, if it has not ended, and is of a kind that is kept as it is.
    fn opaque(&self) -> Option<&RawValue> {
        let known = ["", "message", "reasoning", "function_call", "custom_tool_call", "image_generation_call"];
        self.head.json.as_deref().filter(|_| self.done.is_none() && !known.contains(&&*self.head.kind))
    }

    fn part_mut(&mut self, field: Field, nth: u64) -> usize {
        let known = self.parts.iter().rposition(|part| (part.field, part.nth) == (field, nth));
        known.unwrap_or_else(|| {
            self.parts.push(Part { field, nth, text: String::new(), json: None });
            self.parts.len() - 1
        })
    }

    /// The item as it ended; put together from its deltas if nobody said how that was. None if it said nothing.
    fn json(&self) -> Option<String> {
        if let Some(done) = &self.done {
            return Some(done.get().to_owned());
        }
        let head = self.head.json.as_deref().and_then(|json| serde_json::from_str(json.get()).ok());
        let mut item: Map<String, Value> = head.unwrap_or_default();
        if self.parts.is_empty() {
            return Some(Value::Object(item).to_string()).filter(|_| !matches!(&*self.head.kind, "" | "message"));
        }
        item.entry("type").or_insert(self.head.kind.as_str().into());
        if self.head.kind == "message" {
            item.entry("role").or_insert("assistant".into());
        }
        if item.get("status").is_some_and(|status| status == "in_progress") {
            item.insert("status".into(), "completed".into());
        }
        for (name, fields) in
            [("summary", &[Field::Summary][..]), ("content", &[Field::Text, Field::Refusal, Field::Thought])]
        {
            let mut parts: Vec<_> = self.parts.iter().filter(|part| fields.contains(&part.field)).collect();
            parts.sort_by_key(|part| part.nth);
            if !parts.is_empty() {
                item.insert(name.into(), parts.into_iter().map(Part::to_value).collect());
            }
        }
        for (name, field) in [("arguments", Field::Arguments), ("input", Field::Input)] {
            let text = self.text(field, 0);
            if !text.is_empty() {
                item.insert(name.into(), text.into());
            }
        }
        Some(Value::Object(item).to_string())
    }
}

impl Part {
    fn to_value(&self) -> Value {
        let text = self.text.as_str();
        match (&self.json, self.field) {
            (Some(json), _) => serde_json::from_str(json.get()).unwrap_or_default(),
            (None, Field::Refusal) => json!({"type": "refusal", "refusal": text}),
            (None, Field::Summary) => json!({"type": "summary_text", "text": text}),
            (None, Field::Thought) => json!({"type": "reasoning_text", "text": text}),
            (None, _) => json!({"type": "output_text", "annotations": [], "text": text}),
        }
    }
}
