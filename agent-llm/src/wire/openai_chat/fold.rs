//! Putting a message together from its deltas, in the shape in which it would have come whole.

use agent_core::{Block, Chunk, message::Origin};
use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    events::{CallDelta, Delta},
    fold_call::{CallFold, WholeCall},
    read::{Field, ORDER, details_text},
    read_part::{part, plain},
};
use crate::wire::{
    blocks::Blocks,
    lenient::Content,
    merge::{merge, merge_field},
};

/// A message under way.
///
/// It has one text and one block of reasoning, however often the model goes back to one of them; only a content that is a
/// list of parts may have more.
#[derive(Debug)]
pub(super) struct Fold {
    blocks: Blocks<Key>,
    role: Option<String>,
    /// A content came, if only an empty one. Its text is a block's.
    has_content: bool,
    /// A content that comes as a list; it then holds the text before it, too.
    parts: Vec<Value>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    /// Servers that send reasoning in two spellings say it twice: only the first is heard.
    spelling: Option<Spelling>,
    refusal: Option<String>,
    calls: Vec<CallFold>,
    /// Everything else, merged.
    rest: Map<String, Value>,
}

/// What of a message a block is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Reasoning,
    /// A part of the content, by its place; a text alone is the first.
    Content(usize),
    Call(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    Content,
    Plain,
    Details,
}

impl Key {
    fn field(self) -> Field {
        match self {
            Self::Reasoning => Field::Reasoning,
            Self::Content(_) => Field::Content,
            Self::Call(_) => Field::Calls,
        }
    }
}

const TEXT: Key = Key::Content(0);

impl Fold {
    pub(super) fn new(is_heard: bool) -> Self {
        Self {
            blocks: Blocks::new(is_heard),
            role: None,
            has_content: false,
            parts: Vec::new(),
            reasoning_content: None,
            reasoning: None,
            spelling: None,
            refusal: None,
            calls: Vec::new(),
            rest: Map::new(),
        }
    }

    pub(super) fn push(&mut self, delta: &Delta<'_>, origin: &Origin, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let (None, Some(role)) = (&self.role, &delta.role) {
            self.role = Some(role.0.to_string());
        }
        self.think(delta, out)?;
        match &delta.content {
            Some(Content::Text(more)) if self.parts.is_empty() => {
                self.has_content = true;
                self.say(TEXT, more, out);
            }
            Some(Content::Text(more)) => self.push_part(text_part(more), Block::text(&**more), out),
            Some(Content::Parts(parts)) => {
                self.begin_parts();
                for json in parts {
                    self.push_part(serde_json::from_str(json.get())?, part(json, origin)?, out);
                }
            }
            None => {}
        }
        if let Some(more) = &delta.refusal {
            self.refusal.get_or_insert_default().push_str(&more.0);
        }
        self.push_calls(delta.tool_calls.as_deref().unwrap_or_default(), out)?;
        for (name, json) in &delta.rest {
            merge_field(&mut self.rest, name.0.to_string(), serde_json::from_str(json.get())?);
        }
        Ok(())
    }

    fn think(&mut self, delta: &Delta<'_>, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let Some(more) = &delta.reasoning_content {
            let more = plain(more)?;
            self.reasoning_content.get_or_insert_default().push_str(&more);
            self.think_aloud(Spelling::Content, &more, out);
        }
        if let Some(more) = &delta.reasoning {
            let more = plain(more)?;
            self.reasoning.get_or_insert_default().push_str(&more);
            self.think_aloud(Spelling::Plain, &more, out);
        }
        let details = delta.rest.iter().find(|(name, _)| name.0 == "reasoning_details");
        if let Some(details) = details.and_then(|(_, json)| details_text(json)) {
            self.think_aloud(Spelling::Details, &details, out);
            if !self.blocks.has(Key::Reasoning) {
                // Thinking that only the provider can read.
                self.blocks.turn_to(Key::Reasoning, out);
                self.blocks.reasoning(Key::Reasoning, "", out);
            }
        }
        Ok(())
    }

    fn think_aloud(&mut self, spelling: Spelling, more: &str, out: &mut Vec<Chunk>) {
        if !more.is_empty() && *self.spelling.get_or_insert(spelling) == spelling {
            self.blocks.turn_to(Key::Reasoning, out);
            self.blocks.reasoning(Key::Reasoning, more, out);
        }
    }

    fn say(&mut self, key: Key, more: &str, out: &mut Vec<Chunk>) {
        if !more.is_empty() {
            self.blocks.turn_to(key, out);
            self.blocks.text(key, more, out);
        }
    }

    /// The content is a list from here on.
    fn begin_parts(&mut self) {
        let text = self.blocks.said(TEXT);
        if self.parts.is_empty() && !text.is_empty() {
            self.parts.push(text_part(text));
        }
    }

    /// Goes on with the last part if it is of the same kind, and of a kind that comes in pieces. `block` is what it says.
    fn push_part(&mut self, more: Value, block: Block, out: &mut Vec<Chunk>) {
        let in_pieces = matches!(more["type"].as_str(), Some("text" | "thinking"));
        match self.parts.last_mut() {
            Some(last) if in_pieces && last["type"] == more["type"] => merge(last, more),
            _ => self.parts.push(more),
        }
        let key = Key::Content(self.parts.len() - 1);
        match block {
            Block::Text(text) => self.say(key, &text.text, out),
            Block::Reasoning(reasoning) => {
                self.blocks.turn_to(key, out);
                self.blocks.reasoning(key, &reasoning.text, out);
            }
            other => {
                self.blocks.turn_to(key, out);
                self.blocks.settle(key, other, out);
            }
        }
    }

    /// A call is spoken of once it [can be](CallFold::can_be_spoken), and those before it were.
    fn push_calls(&mut self, deltas: &[CallDelta<'_>], out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        for delta in deltas {
            let at = self.call_of(delta);
            self.calls[at].push(delta)?;
            self.tell_arguments(at, out);
        }
        let mut silent = self.calls.iter().rev().take_while(|call| !call.is_spoken).count();
        while silent > 0 {
            let at = self.calls.len() - silent;
            silent -= 1;
            let call = &mut self.calls[at];
            if !call.can_be_spoken(silent > 0) {
                break;
            }
            call.is_spoken = true;
            self.blocks.turn_to(Key::Call(at), out);
            self.blocks.call(Key::Call(at), &call.id, &call.name, out);
            self.tell_arguments(at, out);
        }
        Ok(())
    }

    fn tell_arguments(&mut self, at: usize, out: &mut Vec<Chunk>) {
        let (key, call) = (Key::Call(at), &self.calls[at]);
        if call.is_spoken {
            let told = self.blocks.said(key).len();
            self.blocks.arguments(key, &call.arguments[told..], out);
        }
    }

    /// The place of the call that `delta` belongs to; a new one where it begins a call.
    fn call_of(&mut self, delta: &CallDelta<'_>) -> usize {
        let id = delta.id.as_ref().map_or("", |id| &*id.0);
        let names = delta.function.as_ref().and_then(|f| f.name.as_ref()).is_some_and(|name| !name.is_empty());
        let begins_another = |call: &CallFold| match (id, call.id.as_str()) {
            // A server without ids that sends whole calls.
            ("", "") => names && !call.name.is_empty() && !call.arguments.is_empty(),
            ("", _) | (_, "") => false,
            (id, known) => id != known, // a server that gives every call the same index
        };
        let known = match delta.index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        known.filter(|at| !begins_another(&self.calls[*at])).unwrap_or_else(|| {
            self.calls.push(CallFold::new(delta.index));
            self.calls.len() - 1
        })
    }

    /// The fields in the order in which they were heard.
    pub(super) fn order(&self) -> [Field; 5] {
        let mut order = ORDER;
        let heard: Vec<Field> = self.blocks.keys().map(Key::field).collect();
        order.sort_by_key(|field| heard.iter().position(|heard| heard == field).unwrap_or(usize::MAX));
        order
    }

    /// The message as it would have come whole in the response of this id.
    ///
    /// # Errors
    /// Never, but for a bug: its keys are texts and its numbers finite.
    pub(super) fn json(&self, response: &str) -> serde_json::Result<Box<RawValue>> {
        to_raw_value(&Whole { fold: self, response })
    }

    /// Ends the message, which `blocks` were read of.
    pub(super) fn finish(self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.blocks.finish(blocks, out)
    }
}

fn text_part(text: &str) -> Value {
    serde_json::json!({"type": "text", "text": text})
}

struct Whole<'a> {
    fold: &'a Fold,
    response: &'a str,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fold = self.fold;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", fold.role.as_deref().unwrap_or("assistant"))?;
        if fold.parts.is_empty() {
            map.serialize_entry("content", &fold.has_content.then(|| fold.blocks.said(TEXT)))?;
        } else {
            map.serialize_entry("content", &fold.parts)?;
        }
        for (name, text) in
            [("reasoning_content", &fold.reasoning_content), ("reasoning", &fold.reasoning), ("refusal", &fold.refusal)]
        {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if !fold.calls.is_empty() {
            let calls = fold.calls.iter().enumerate();
            let calls: Vec<_> = calls.map(|(at, call)| WholeCall { call, at, response: self.response }).collect();
            map.serialize_entry("tool_calls", &calls)?;
        }
        fold.rest.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}
