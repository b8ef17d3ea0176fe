//! Accumulates the blocks of a message from events, for wires with alternating roles.

use std::{
    marker::PhantomData,
    mem::{replace, take},
};

use agent_core::{Block, Chunk, message::Origin};
use serde::Serialize;
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{AlternatingRoles, says_nothing, turn::Said};
use crate::wire::{
    blocks::Blocks,
    content::Input,
    ids::{NAMELESS, call_id},
    merge::merge_fields,
};

/// Streaming format of a wire, by kind of block.
pub(crate) trait Streamed: AlternatingRoles + Send {
    /// Kind of text blocks.
    const TEXT: &'static str;
    /// Kind of reasoning blocks.
    const THOUGHTS: &'static str;
    /// Kind of call blocks.
    const CALL: &'static str;
    /// Field with a call's id.
    const ID: &'static str;

    /// A delta of a block.
    type Delta<'a>;

    /// Returns the kind of block that this delta belongs to; empty if it may be any, `None` if the
    /// delta is empty.
    fn kind<'d>(delta: &'d Self::Delta<'_>) -> Option<&'d str>;

    /// Returns the text in a delta of a block of this kind.
    fn words<'d>(kind: &str, delta: &'d Self::Delta<'_>) -> &'d str;

    /// Applies the other fields of a delta.
    ///
    /// # Errors
    /// If a field is not valid JSON.
    fn push(draft: &mut Draft, delta: &Self::Delta<'_>) -> serde_json::Result<()>;

    /// Returns false for a call of a tool that the provider runs itself.
    fn is_ours(_: &Draft) -> bool {
        true
    }

    /// Returns the block's JSON as in a non-streamed response, with the text or arguments `said`.
    fn json(draft: Draft, said: &str) -> Box<RawValue>;
}

/// A block in progress.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) kind: String,
    has_started: bool,
    /// Fields of its start, and of deltas, except its text.
    pub(crate) fields: Map<String, Value>,
    /// Arguments of a call that were not emitted yet.
    pub(crate) input: String,
}

impl Draft {
    /// Creates a block that begins with these fields.
    pub(crate) fn started(kind: impl Into<String>, fields: Map<String, Value>) -> Self {
        Self { kind: kind.into(), has_started: true, fields, input: String::new() }
    }

    /// Returns the text of a field; empty if unset.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Appends to the text of a field.
    pub(crate) fn extend(&mut self, name: &str, more: &str) {
        match self.fields.get_mut(name) {
            Some(Value::String(known)) => known.push_str(more),
            _ => drop(self.fields.insert(name.to_owned(), more.into())),
        }
    }

    /// Adds a citation.
    pub(crate) fn cite(&mut self, citation: &RawValue) -> serde_json::Result<()> {
        match self.fields.entry("citations").or_insert(Value::Null) {
            Value::Array(citations) => citations.push(serde_json::from_str(citation.get())?),
            none if none.is_null() => *none = Value::Array(vec![serde_json::from_str(citation.get())?]),
            _ => {}
        }
        Ok(())
    }

    /// Removes and returns the arguments in a call's start; an empty object by default.
    fn begun(&mut self) -> String {
        let begun = self.fields.remove("input").filter(Value::is_object);
        begun.map_or_else(|| "{}".to_owned(), |begun| begun.to_string())
    }

    /// Returns true if the delta may belong to this block; unknown kinds of blocks accept any
    /// delta.
    fn takes<W: Streamed>(&self, delta: &W::Delta<'_>) -> bool {
        let is_known = [W::TEXT, W::THOUGHTS, W::CALL].contains(&self.kind.as_str());
        !is_known || W::kind(delta).is_none_or(|kind| kind.is_empty() || kind == self.kind)
    }

    /// Returns true if `start` is the late start of this block, whose deltas came first, including
    /// a call without an id so far.
    fn goes_on_with<W: Streamed>(&self, start: &Self, has_said: bool) -> bool {
        let is_same = self.kind == start.kind;
        match self.has_started {
            true => is_same && self.kind == W::CALL && self.field(W::ID).is_empty(),
            false => is_same || !has_said,
        }
    }

    /// Returns true if `start` adds no information: a call that starts again with the same id, or
    /// without one, is the open call.
    fn is_repeated_by<W: Streamed>(&self, start: &Self) -> bool {
        let (id, known) = (start.field(W::ID), self.field(W::ID));
        self.kind == W::CALL && start.kind == W::CALL && (id.is_empty() || id == known)
    }

    /// Applies the fields of the block's start.
    fn adopt(&mut self, start: Self) {
        let Self { fields, input, .. } = replace(self, start);
        merge_fields(&mut self.fields, fields);
        self.input = input;
    }

    /// Returns id and name of a call, if both are known.
    fn call<W: Streamed>(&self) -> Option<(&str, &str)> {
        let (id, name) = (self.field(W::ID), self.field("name"));
        (self.kind == W::CALL && W::is_ours(self) && !id.is_empty() && !name.is_empty()).then_some((id, name))
    }

    /// Gives a call, the block at `at` of this response, an id and a name if it has none.
    fn name<W: Streamed>(&mut self, response: &str, at: usize) {
        if self.field(W::ID).is_empty() {
            self.fields.insert(W::ID.into(), call_id(response, at).into());
        }
        if self.field("name").is_empty() {
            self.fields.insert("name".into(), NAMELESS.into());
        }
    }
}

/// Blocks of a message in progress.
///
/// Blocks are ordered by their first content: in a well-ordered stream, the order of their starts.
/// A delta without a block begins one; a call's deltas before its name are emitted once the name is
/// known.
#[derive(Debug)]
pub(crate) struct Fold<W> {
    pub(crate) origin: Origin,
    /// Id of the response, for generated call ids.
    pub(crate) response: String,
    /// Contents of the drafts, by index.
    blocks: Blocks<usize>,
    slots: Vec<Slot>,
    /// Indices of the drafts that have not ended.
    open: Vec<usize>,
    wire: PhantomData<W>,
}

#[derive(Debug)]
struct Slot {
    /// The provider's index of the block, which a later block may reuse.
    index: u64,
    draft: Draft,
    /// JSON of the block as in a non-streamed response, once it has ended.
    json: Box<RawValue>,
}

impl<W: Streamed> Fold<W> {
    pub(crate) fn new(origin: Origin, is_heard: bool) -> Self {
        let (slots, open) = (Vec::new(), Vec::new());
        Self { origin, response: String::new(), blocks: Blocks::new(is_heard), slots, open, wire: PhantomData }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a complete block.
    pub(crate) fn put(&mut self, json: &RawValue, chunks: &mut Vec<Chunk>) {
        let block = W::read(json, &self.origin);
        if !says_nothing(&block) {
            self.slots.push(Slot { index: 0, draft: Draft::default(), json: json.to_owned() });
            self.blocks.settle(self.slots.len() - 1, block, chunks);
        }
    }

    /// Begins a block, with the text `said` if it is text or reasoning.
    pub(crate) fn start(&mut self, index: Option<u64>, start: Draft, said: &str, chunks: &mut Vec<Chunk>) {
        let index = self.index(index);
        let at = match self.open_at(index) {
            Some(at) if self.slots[at].draft.goes_on_with::<W>(&start, self.blocks.has(at)) => {
                self.slots[at].draft.adopt(start);
                at
            }
            Some(at) if self.slots[at].draft.is_repeated_by::<W>(&start) => return,
            known => self.open_after(known, index, start, chunks),
        };
        self.say(at, said, chunks);
        self.call(at, chunks);
    }

    /// Applies a delta.
    ///
    /// # Errors
    /// If a field is not valid JSON.
    pub(crate) fn delta(
        &mut self,
        index: Option<u64>,
        delta: &W::Delta<'_>,
        chunks: &mut Vec<Chunk>,
    ) -> serde_json::Result<()> {
        let index = self.index(index);
        let at = match self.open_at(index) {
            Some(at) if self.slots[at].draft.takes::<W>(delta) => at,
            known => match W::kind(delta) {
                Some(kind) => {
                    let draft = Draft { kind: kind.to_owned(), ..Draft::default() };
                    self.open_after(known, index, draft, chunks)
                }
                None => return Ok(()),
            },
        };
        let words = W::words(&self.slots[at].draft.kind, delta);
        self.say(at, words, chunks);
        W::push(&mut self.slots[at].draft, delta)?;
        self.call(at, chunks);
        Ok(())
    }

    /// Ends a block.
    pub(crate) fn stop(&mut self, index: Option<u64>, chunks: &mut Vec<Chunk>) {
        if let Some(at) = self.open_at(self.index(index)) {
            self.end(at, chunks);
        }
    }

    /// Ends all blocks; returns them in order, with the message's JSON as in a non-streamed
    /// response.
    pub(crate) fn finish(mut self, chunks: &mut Vec<Chunk>) -> (Box<RawValue>, Vec<Block>) {
        while let Some(at) = self.open.first().copied() {
            self.end(at, chunks);
        }
        let content: Vec<_> = self.blocks.keys().map(|at| &*self.slots[at].json).collect();
        let message = to_raw_value(&Said { role: "assistant", content }).expect("it is JSON");
        (message, self.blocks.into_blocks())
    }

    fn index(&self, index: Option<u64>) -> u64 {
        index.or_else(|| self.open.last().map(|at| self.slots[*at].index)).unwrap_or(0)
    }

    fn open_at(&self, index: u64) -> Option<usize> {
        self.open.iter().rev().copied().find(|at| self.slots[*at].index == index)
    }

    /// Opens a draft, replacing the open one with the same index.
    fn open_after(&mut self, known: Option<usize>, index: u64, draft: Draft, chunks: &mut Vec<Chunk>) -> usize {
        if let Some(at) = known {
            self.end(at, chunks);
        }
        self.slots.push(Slot { index, draft, json: Box::default() });
        self.open.push(self.slots.len() - 1);
        self.slots.len() - 1
    }

    fn say(&mut self, at: usize, words: &str, chunks: &mut Vec<Chunk>) {
        let kind = self.slots[at].draft.kind.as_str();
        if kind == W::TEXT {
            self.blocks.text(at, words, chunks);
        } else if kind == W::THOUGHTS && !words.is_empty() {
            self.blocks.reasoning(at, words, chunks); // it may never have text
        }
    }

    /// Emits new deltas of a call, once its id and name are known.
    fn call(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        let draft = &mut self.slots[at].draft;
        let Some((id, name)) = draft.call::<W>() else { return };
        self.blocks.call(at, id, name, chunks);
        self.blocks.arguments(at, &draft.input, chunks);
        draft.input.clear();
    }

    /// Ends a call: a nameless call gets a name and an id; one without arguments gets those of its
    /// start.
    fn end(&mut self, at: usize, chunks: &mut Vec<Chunk>) {
        self.open.retain(|open| *open != at);
        let draft = &mut self.slots[at].draft;
        if draft.kind == W::CALL {
            draft.name::<W>(&self.response, at);
            if draft.input.is_empty() && self.blocks.said(at).is_empty() {
                draft.input = draft.begun();
            }
        }
        self.call(at, chunks);
        let (mut draft, said) = (take(&mut self.slots[at].draft), self.blocks.said(at));
        let input = take(&mut draft.input);
        let json = W::json(draft, if said.is_empty() { &input } else { said });
        let mut block = W::read(&json, &self.origin);
        if let (Block::ToolCall(call), Input::Invalid { text }) = (&mut block, Input::new(said)) {
            text.clone_into(&mut call.arguments); // the model's text, not its object form
        }
        self.slots[at].json = json;
        if !says_nothing(&block) {
            self.blocks.settle(at, block, chunks);
        }
    }
}

/// JSON of a call: these fields, and arguments as an object even if the model wrote something else.
#[derive(Serialize)]
pub(crate) struct Call<'a> {
    #[serde(flatten)]
    pub(crate) fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Input<'a>>,
}
