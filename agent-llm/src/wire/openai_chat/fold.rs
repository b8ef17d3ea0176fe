//! Accumulates a message from deltas, in the shape of a non-streamed response.

use std::mem::take;

use agent_core::{Block, Chunk, message::Origin};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    parts::{part, plain},
    read::{CallSaid, DETAILS, Field, ORDER, SPELLINGS},
    tags::{Piece, Tags},
};
use crate::wire::{
    blocks::Blocks,
    content::push_arguments,
    ids::{NAMELESS, call_id},
    lenient::{Content, Str, text},
    merge::{merge, merge_field},
    open_struct::open_struct,
};

open_struct! {
    /// One delta of a message.
    Delta {
        content: Content<'a> = "content",
        tool_calls: Vec<CallSaid<'a>> = "tool_calls",
    }
}

/// Field of the message that a block comes from, and its index there: a text alone is the first
/// part of the content.
type Key = (Field, usize);

const REASONING: Key = (Field::Reasoning, 0);
const TEXT: Key = (Field::Content, 0);

/// A message in progress.
///
/// It has one text and one block of reasoning, even if the model alternates between them; only a
/// content that is a list of parts may have more.
#[derive(Debug)]
pub(super) struct Fold {
    origin: Origin,
    blocks: Blocks<Key>,
    /// The message, if it came whole.
    whole: Option<Box<RawValue>>,
    /// True once a content was sent, even an empty one. Its text is stored in a block.
    has_content: bool,
    /// Content as a list, which then also contains the text before it.
    parts: Vec<Value>,
    /// Field with the reasoning. Some servers repeat it in several fields: only the first is used.
    spelling: Option<&'static str>,
    calls: Vec<Call>,
    /// Number of calls that were emitted.
    spoken: usize,
    /// All other fields, merged.
    rest: Map<String, Value>,
    /// Parser for thinking in the content, for a server that leaves it there.
    tags: Option<Tags>,
}

/// A call in progress.
#[derive(Debug, Default)]
struct Call {
    /// The server's index of the call, if any.
    index: Option<u64>,
    id: String,
    kind: String,
    name: String,
    arguments: String,
    /// Other fields of the function, and of the call.
    function: Map<String, Value>,
    rest: Map<String, Value>,
}

impl Fold {
    pub(super) fn new(origin: Origin, is_heard: bool, has_tags: bool) -> Self {
        Self {
            origin,
            blocks: Blocks::new(is_heard),
            whole: None,
            has_content: false,
            parts: Vec::new(),
            spelling: None,
            calls: Vec::new(),
            spoken: 0,
            rest: Map::new(),
            tags: has_tags.then(Tags::default),
        }
    }

    /// Sets the message if it came whole, unless it repeats deltas.
    pub(super) fn put(&mut self, message: &RawValue) {
        if !self.has_content && self.parts.is_empty() && self.calls.is_empty() && self.rest.is_empty() {
            self.whole = Some(message.to_owned());
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    pub(super) fn push(&mut self, delta: &Delta<'_>, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        for (name, json) in delta.rest.iter().filter(|(name, _)| !BOOKKEEPING.contains(&&**name)) {
            let more = serde_json::from_str(json.get())?;
            self.think(name, &more, out);
            merge_field(&mut self.rest, name.to_string(), more);
        }
        match &delta.content {
            Some(Content::Text(more)) if self.parts.is_empty() => {
                self.has_content = true;
                match self.tags.as_mut().map(|tags| tags.push(more)) {
                    None => self.say(TEXT, more, out),
                    Some(pieces) => {
                        for piece in pieces {
                            match piece {
                                Piece::Thinking(more) => {
                                    self.blocks.turn_to(REASONING, out);
                                    self.blocks.reasoning(REASONING, &more, out);
                                }
                                Piece::Text(more) => self.say(TEXT, &more, out),
                            }
                        }
                    }
                }
            }
            Some(Content::Text(more)) if more.is_empty() => {}
            Some(Content::Text(more)) => self.push_part(text_part(more), Block::text(&**more), out),
            Some(Content::Parts(parts)) => {
                for json in parts {
                    self.push_part(serde_json::from_str(json.get())?, part(json, &self.origin), out);
                }
            }
            None => {}
        }
        self.push_calls(delta.tool_calls.as_deref().unwrap_or_default(), out)
    }

    /// Appends to the reasoning, if the field contains reasoning.
    fn think(&mut self, field: &str, said: &Value, out: &mut Vec<Chunk>) {
        let mut known = SPELLINGS.into_iter().chain([DETAILS]);
        let Some(field) = known.find(|known| *known == field) else { return };
        let more = plain(said);
        let is_heard = !more.is_empty() && *self.spelling.get_or_insert(field) == field;
        // Encrypted reasoning becomes a block, too.
        let is_sealed = field == DETAILS && *said != json!([]) && !self.blocks.has(REASONING);
        if is_heard || is_sealed {
            self.blocks.turn_to(REASONING, out);
            self.blocks.reasoning(REASONING, &more, out);
        }
    }

    fn say(&mut self, key: Key, more: &str, out: &mut Vec<Chunk>) {
        if !more.is_empty() {
            self.blocks.turn_to(key, out);
            self.blocks.text(key, more, out);
        }
    }

    /// Continues the last part if it has the same, streamable kind; else adds a part. `block` is
    /// its content.
    fn push_part(&mut self, more: Value, block: Block, out: &mut Vec<Chunk>) {
        let text = self.blocks.said(TEXT);
        if self.parts.is_empty() && !text.is_empty() {
            self.parts.push(text_part(text));
        }
        let in_pieces = matches!(more["type"].as_str(), Some("text" | "thinking"));
        match self.parts.last_mut() {
            Some(last) if in_pieces && last["type"] == more["type"] => {
                merge(last, more);
                join_thinking(last);
            }
            _ => self.parts.push(more),
        }
        let key = (Field::Content, self.parts.len() - 1);
        if let Block::Text(text) = &block {
            return self.say(key, &text.text, out);
        }
        self.blocks.turn_to(key, out);
        match block {
            Block::Reasoning(reasoning) => self.blocks.reasoning(key, &reasoning.text, out),
            other => self.blocks.settle(key, other, out),
        }
    }

    /// Applies deltas of calls. A call is emitted once it [can be](Call::can_be_spoken), after
    /// those before it.
    fn push_calls(&mut self, deltas: &[CallSaid<'_>], out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        for delta in deltas {
            let at = self.call_of(delta);
            let known = self.calls[at].arguments.len();
            self.calls[at].push(delta)?;
            self.blocks.arguments((Field::Calls, at), &self.calls[at].arguments[known..], out);
        }
        while let Some(call) = self.calls.get(self.spoken)
            && call.can_be_spoken(self.spoken + 1 < self.calls.len())
        {
            let key = (Field::Calls, self.spoken);
            self.blocks.turn_to(key, out);
            self.blocks.call(key, &call.id, &call.name, out);
            self.blocks.arguments(key, &call.arguments, out);
            self.spoken += 1;
        }
        Ok(())
    }

    /// Returns the index of the call that `delta` belongs to, adding a call if it begins one.
    fn call_of(&mut self, delta: &CallSaid<'_>) -> usize {
        let (id, index) = (text(&delta.id), delta.index.map(|index| index.0));
        let names = delta.function.as_ref().is_some_and(|function| !text(&function.name).is_empty());
        let begins_another = |call: &Call| match (id, call.id.as_str()) {
            // A server without ids that sends whole calls.
            ("", "") => names && !call.name.is_empty() && !call.arguments.is_empty(),
            ("", _) | (_, "") => false,
            (id, known) => id != known, // a server that uses one index for all calls
        };
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        known.filter(|at| !begins_another(&self.calls[*at])).unwrap_or_else(|| {
            self.calls.push(Call { index, ..Call::default() });
            self.calls.len() - 1
        })
    }

    /// Returns the fields in the order in which they were streamed.
    pub(super) fn order(&self) -> [Field; 5] {
        let mut order = ORDER;
        let heard: Vec<Field> = self.blocks.keys().map(|(field, _)| field).collect();
        order.sort_by_key(|field| heard.iter().position(|heard| heard == field).unwrap_or(usize::MAX));
        order
    }

    /// Returns the message as it came, or as in the non-streamed response with this id, from which
    /// missing call ids are generated.
    ///
    /// # Errors
    /// Only in case of a bug: its keys are strings and its numbers finite.
    pub(super) fn json(&mut self, response: &str) -> serde_json::Result<Box<RawValue>> {
        if let Some(whole) = self.whole.take() {
            return Ok(whole);
        }
        let text = || self.tags.as_ref().map_or_else(|| self.blocks.said(TEXT), Tags::raw);
        let text = self.has_content.then(text);
        let content = if self.parts.is_empty() { json!(text) } else { take(&mut self.parts).into() };
        let mut message = take(&mut self.rest);
        message.entry("role").or_insert("assistant".into());
        message.insert("content".into(), content);
        let calls = take(&mut self.calls).into_iter().enumerate();
        let calls: Vec<_> = calls.map(|(at, call)| call.into_value(|| call_id(response, at))).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        to_raw_value(&message)
    }

    /// Ends the message, which was decoded into `blocks`.
    pub(super) fn finish(self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.blocks.finish(blocks, out)
    }
}

impl Call {
    /// Returns true once name and id are known, and later data has arrived: until then the name may
    /// continue.
    fn can_be_spoken(&self, others_follow: bool) -> bool {
        !self.name.is_empty() && !self.id.is_empty() && (others_follow || !self.arguments.is_empty())
    }

    fn push(&mut self, delta: &CallSaid<'_>) -> serde_json::Result<()> {
        for (known, said) in [(&mut self.id, &delta.id), (&mut self.kind, &delta.kind)] {
            if known.is_empty() {
                known.push_str(text(said));
            }
        }
        if let Some(said) = &delta.function {
            // A name is sent whole, in pieces before the arguments, or repeated with every piece of
            // them.
            let name = text(&said.name);
            if self.name.is_empty() || self.arguments.is_empty() && self.name != name {
                self.name.push_str(name);
            }
            said.arguments.map_or(Ok(()), |more| push_arguments(more, &mut self.arguments))?;
            merge_all(&mut self.function, &said.rest)?;
        }
        merge_all(&mut self.rest, &delta.rest)
    }

    /// Returns the call as in a non-streamed response. A call that is not a function has its
    /// content in a field named after its type.
    fn into_value(self, id: impl FnOnce() -> String) -> Value {
        let Self { id: known, kind, name, arguments, mut function, rest: mut call, .. } = self;
        let kind = if kind.is_empty() { "function".into() } else { kind };
        if kind == "function" || !name.is_empty() || !arguments.is_empty() {
            function.insert("name".into(), if name.is_empty() { NAMELESS.into() } else { name.into() });
            function.insert("arguments".into(), arguments.into());
            call.insert("function".into(), function.into());
        }
        call.insert("id".into(), if known.is_empty() { id() } else { known }.into());
        call.insert("type".into(), kind.into());
        call.into()
    }
}

fn merge_all(known: &mut Map<String, Value>, more: &[(Str<'_>, &RawValue)]) -> serde_json::Result<()> {
    more.iter().try_for_each(|(name, json)| {
        merge_field(known, name.to_string(), serde_json::from_str(json.get())?);
        Ok(())
    })
}

/// Bookkeeping fields in deltas, which non-streamed messages do not have.
const BOOKKEEPING: [&str; 1] = ["token_id"];

/// Joins the texts of a thinking part, as in a non-streamed response.
fn join_thinking(part: &mut Value) {
    let Some(Value::Array(texts)) = part.get_mut("thinking") else { return };
    let is_text = |item: &Value| item.as_object().is_some_and(|item| item.len() == 2 && item["type"] == "text");
    let mut joined: Vec<Value> = Vec::with_capacity(1);
    for item in take(texts) {
        match (joined.last_mut(), item["text"].as_str()) {
            (Some(last), Some(more)) if is_text(last) && is_text(&item) => {
                if let Some(Value::String(said)) = last.get_mut("text") {
                    said.push_str(more);
                }
            }
            _ => joined.push(item),
        }
    }
    *texts = joined;
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
