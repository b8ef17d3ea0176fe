//! Putting a message together from its deltas, in the shape in which it would have come whole.

use agent_core::{Block, Chunk, message::Origin};
use serde::Serialize;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    parts::{part, plain},
    read::{Field, ORDER, SPELLINGS, details_text},
};
use crate::wire::{
    blocks::Blocks,
    content::push_arguments,
    ids::{NAMELESS, call_id},
    lenient::{Content, Str},
    merge::{merge, merge_field},
    open_struct::open_struct,
};

open_struct! {
    /// One delta of a message.
    Delta {
        role: Str<'a> = "role",
        content: Content<'a> = "content",
        tool_calls: Vec<CallDelta<'a>> = "tool_calls",
    }
}

open_struct! {
    /// One delta of a call.
    CallDelta {
        index: u64 = "index",
        id: Str<'a> = "id",
        kind: Str<'a> = "type",
        function: FunctionDelta<'a> = "function",
    }
}

open_struct! {
    FunctionDelta { name: Str<'a> = "name", arguments: &'a RawValue = "arguments", }
}

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
    /// Servers that send reasoning in several fields say it twice: only the first is heard.
    spelling: Option<&'static str>,
    calls: Vec<Call>,
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

/// The field in which some servers have the reasoning once more, with what proves it.
const DETAILS: &str = "reasoning_details";

/// A message as it would have come whole.
#[derive(Serialize)]
struct Whole<'a> {
    role: &'a str,
    content: Value,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [Call],
    #[serde(flatten)]
    rest: &'a Map<String, Value>,
}

/// A call under way, and as it would have come whole.
#[derive(Debug, Default, Serialize)]
struct Call {
    /// The server's number for it, if it has one.
    #[serde(skip)]
    index: Option<u64>,
    id: String,
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<Function>,
    #[serde(flatten)]
    rest: Map<String, Value>,
    #[serde(skip)]
    is_spoken: bool,
}

#[derive(Debug, Default, Serialize)]
struct Function {
    name: String,
    arguments: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Fold {
    pub(super) fn new(is_heard: bool) -> Self {
        Self {
            blocks: Blocks::new(is_heard),
            role: None,
            has_content: false,
            parts: Vec::new(),
            spelling: None,
            calls: Vec::new(),
            rest: Map::new(),
        }
    }

    pub(super) fn push(&mut self, delta: &Delta<'_>, origin: &Origin, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        if let (None, Some(role)) = (&self.role, &delta.role) {
            self.role = Some(role.to_string());
        }
        for name in SPELLINGS.into_iter().chain([DETAILS]) {
            if let Some((_, json)) = delta.rest.iter().find(|(known, _)| &**known == name) {
                self.think(name, json, out)?;
            }
        }
        match &delta.content {
            Some(Content::Text(more)) if self.parts.is_empty() => {
                self.has_content = true;
                self.say(TEXT, more, out);
            }
            Some(Content::Text(more)) => self.push_part(text_part(more), Block::text(&**more), out),
            Some(Content::Parts(parts)) => {
                self.begin_parts();
                for json in parts {
                    self.push_part(serde_json::from_str(json.get())?, part(json, origin), out);
                }
            }
            None => {}
        }
        self.push_calls(delta.tool_calls.as_deref().unwrap_or_default(), out)?;
        let others = delta.rest.iter().filter(|(name, _)| !SPELLINGS.contains(&&**name));
        merge_all(&mut self.rest, others)
    }

    /// More reasoning in the field `name`.
    fn think(&mut self, name: &'static str, json: &RawValue, out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        let more = if name == DETAILS {
            let Some(more) = details_text(json) else { return Ok(()) };
            more
        } else {
            let more = plain(&serde_json::from_str(json.get())?);
            merge_field(&mut self.rest, name.into(), more.as_str().into());
            more
        };
        let is_heard = !more.is_empty() && *self.spelling.get_or_insert(name) == name;
        // Thinking that only the provider can read has its place, too.
        if is_heard || name == DETAILS && !self.blocks.has(Key::Reasoning) {
            self.blocks.turn_to(Key::Reasoning, out);
            self.blocks.reasoning(Key::Reasoning, &more, out);
        }
        Ok(())
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

    /// A call is spoken of once it [can be](Call::can_be_spoken), and those before it were.
    fn push_calls(&mut self, deltas: &[CallDelta<'_>], out: &mut Vec<Chunk>) -> serde_json::Result<()> {
        for delta in deltas {
            let at = self.call_of(delta);
            self.calls[at].push(delta)?;
            self.tell_arguments(at, out);
        }
        let silent = self.calls.iter().rev().take_while(|call| !call.is_spoken).count();
        for at in self.calls.len() - silent..self.calls.len() {
            let others_follow = at + 1 < self.calls.len();
            let call = &mut self.calls[at];
            if !call.can_be_spoken(others_follow) {
                break;
            }
            call.is_spoken = true;
            self.blocks.turn_to(Key::Call(at), out);
            self.blocks.call(Key::Call(at), &call.id, call.name(), out);
            self.tell_arguments(at, out);
        }
        Ok(())
    }

    fn tell_arguments(&mut self, at: usize, out: &mut Vec<Chunk>) {
        let (key, call) = (Key::Call(at), &self.calls[at]);
        if call.is_spoken {
            let told = self.blocks.said(key).len();
            self.blocks.arguments(key, &call.arguments()[told..], out);
        }
    }

    /// The place of the call that `delta` belongs to; a new one where it begins a call.
    fn call_of(&mut self, delta: &CallDelta<'_>) -> usize {
        let id = delta.id.as_deref().unwrap_or_default();
        let names = delta.function.as_ref().and_then(|f| f.name.as_deref()).is_some_and(|name| !name.is_empty());
        let begins_another = |call: &Call| match (id, call.id.as_str()) {
            // A server without ids that sends whole calls.
            ("", "") => names && !call.name().is_empty() && !call.arguments().is_empty(),
            ("", _) | (_, "") => false,
            (id, known) => id != known, // a server that gives every call the same index
        };
        let known = match delta.index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|call| call.id == id),
        };
        known.filter(|at| !begins_another(&self.calls[*at])).unwrap_or_else(|| {
            self.calls.push(Call { index: delta.index, ..Call::default() });
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

    /// The message as it would have come whole in the response of this id, of which the ids are made that calls do not have.
    ///
    /// # Errors
    /// Never, but for a bug: its keys are texts and its numbers finite.
    pub(super) fn json(&mut self, response: &str) -> serde_json::Result<Box<RawValue>> {
        self.calls.iter_mut().enumerate().for_each(|(at, call)| call.complete(|| call_id(response, at)));
        let text = self.has_content.then(|| self.blocks.said(TEXT));
        let content = if self.parts.is_empty() { json!(text) } else { json!(self.parts) };
        let role = self.role.as_deref().unwrap_or("assistant");
        to_raw_value(&Whole { role, content, tool_calls: &self.calls, rest: &self.rest })
    }

    /// Ends the message, which `blocks` were read of.
    pub(super) fn finish(self, blocks: Vec<Block>, out: &mut Vec<Chunk>) -> Vec<Block> {
        self.blocks.finish(blocks, out)
    }
}

impl Call {
    fn name(&self) -> &str {
        self.function.as_ref().map_or("", |function| &function.name)
    }

    fn arguments(&self) -> &str {
        self.function.as_ref().map_or("", |function| &function.arguments)
    }

    /// True once its name and its id are known, and more has come than these: until then there may be more of the name.
    fn can_be_spoken(&self, others_follow: bool) -> bool {
        !self.name().is_empty() && !self.id.is_empty() && (others_follow || !self.arguments().is_empty())
    }

    fn push(&mut self, delta: &CallDelta<'_>) -> serde_json::Result<()> {
        for (known, said) in [(&mut self.id, &delta.id), (&mut self.r#type, &delta.kind)] {
            if known.is_empty() {
                known.push_str(said.as_deref().unwrap_or_default());
            }
        }
        if let Some(said) = &delta.function {
            let function = self.function.get_or_insert_default();
            // A name comes whole, in pieces before the arguments, or again with every piece of them.
            let name = said.name.as_deref().unwrap_or_default();
            if function.name.is_empty() || function.arguments.is_empty() && function.name != name {
                function.name.push_str(name);
            }
            said.arguments.map_or(Ok(()), |more| push_arguments(more, &mut function.arguments))?;
            merge_all(&mut function.rest, &said.rest)?;
        }
        merge_all(&mut self.rest, &delta.rest)
    }

    /// Nothing more of it will come. A call of another kind has what it says in a field of its kind.
    fn complete(&mut self, id: impl FnOnce() -> String) {
        if self.id.is_empty() {
            self.id = id();
        }
        if self.r#type.is_empty() {
            self.r#type = "function".into();
        }
        if self.name().is_empty() && self.arguments().is_empty() && self.r#type != "function" {
            self.function = None;
        } else if self.name().is_empty() {
            self.function.get_or_insert_default().name = NAMELESS.into();
        }
    }
}

fn merge_all<'a>(
    known: &mut Map<String, Value>,
    more: impl IntoIterator<Item = &'a (Str<'a>, &'a RawValue)>,
) -> serde_json::Result<()> {
    more.into_iter().try_for_each(|(name, json)| {
        merge_field(known, name.to_string(), serde_json::from_str(json.get())?);
        Ok(())
    })
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
