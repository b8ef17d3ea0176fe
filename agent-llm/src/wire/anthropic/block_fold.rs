//! Putting one block together.

use agent_core::{Block, message::Origin};
use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::{Map, Value, value::RawValue};

use super::{parts::Input, read};
use crate::wire::{
    content::says_more_than_deltas,
    ids::{NAMELESS, call_id},
    lenient::Str,
    merge::merge_field,
    open_struct::open_struct,
};

open_struct! {
    /// More of a block, or of what is said about the message.
    Delta {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        thinking: Str<'a> = "thinking",
        signature: Str<'a> = "signature",
        partial_json: Str<'a> = "partial_json",
        citation: &'a RawValue = "citation",
        stop_reason: Str<'a> = "stop_reason",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    ToolUse,
    Other,
}

impl Kind {
    fn of(block: &str) -> Self {
        match block {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "tool_use" => Self::ToolUse,
            _ => Self::Other,
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("text"),
            Self::Thinking => Some("thinking"),
            Self::ToolUse => Some("tool_use"),
            Self::Other => None,
        }
    }
}

impl Delta<'_> {
    /// The kind of block that this is more of; none if it may be any.
    pub(super) fn of(&self) -> Option<Kind> {
        match self.kind.as_ref().map_or("", |kind| &kind.0) {
            "text_delta" | "citations_delta" => Some(Kind::Text),
            "thinking_delta" | "signature_delta" => Some(Kind::Thinking),
            "input_json_delta" => Some(Kind::ToolUse),
            _ => None,
        }
    }
}

/// A block under way.
#[derive(Debug)]
pub(super) struct BlockFold {
    /// The provider's number for it, which another block may have later.
    pub(super) index: u64,
    pub(super) kind: Kind,
    /// Its place among the blocks that say something.
    pub(super) number: Option<u32>,
    /// The text, or the thinking.
    pub(super) said: String,
    /// The block with its JSON, once it has ended.
    pub(super) done: Option<(String, Block)>,
    has_started: bool,
    /// What it began with, and what else came.
    fields: Map<String, Value>,
    input: String,
    /// Bytes of the input that were spoken.
    spoken: usize,
}

impl BlockFold {
    /// A block of which a delta came first.
    pub(super) fn unstarted(index: u64, kind: Kind) -> Self {
        Self {
            index,
            kind,
            number: None,
            said: String::new(),
            done: None,
            has_started: false,
            fields: Map::new(),
            input: String::new(),
            spoken: 0,
        }
    }

    pub(super) fn started(index: u64, json: &str) -> serde_json::Result<Self> {
        let fields: Map<String, Value> = serde_json::from_str(json)?;
        let kind = Kind::of(fields.get("type").and_then(Value::as_str).unwrap_or_default());
        let mut start = Self { has_started: true, fields, ..Self::unstarted(index, kind) };
        if let Kind::Text | Kind::Thinking = kind
            && let Some(Value::String(said)) = kind.name().and_then(|name| start.fields.get_mut(name))
        {
            start.said = std::mem::take(said);
        }
        Ok(start)
    }

    /// True if the block came before its start, which is this, or is a call that has no id yet.
    pub(super) fn goes_on_with(&self, start: &Self) -> bool {
        let is_same = self.kind == start.kind;
        match self.has_started {
            true => is_same && self.kind == Kind::ToolUse && self.text("id").is_empty(),
            false => is_same || self.number.is_none(),
        }
    }

    /// True if this start says nothing that is not known.
    pub(super) fn is_repeated_by(&self, start: &Self) -> bool {
        let (id, known) = (start.text("id"), self.text("id"));
        self.kind == Kind::ToolUse && start.kind == Kind::ToolUse && (id.is_empty() || id == known)
    }

    pub(super) fn adopt(&mut self, start: Self) {
        (self.has_started, self.kind) = (true, start.kind);
        let more = std::mem::replace(&mut self.fields, start.fields);
        more.into_iter().for_each(|(name, value)| merge_field(&mut self.fields, name, value));
    }

    /// True if a delta of this kind may be more of the block.
    pub(super) fn takes(&self, kind: Option<Kind>) -> bool {
        self.kind == Kind::Other || kind.is_none_or(|kind| kind == self.kind)
    }

    /// Takes what is not [`said`](Self::said).
    pub(super) fn push(&mut self, delta: &Delta<'_>) -> serde_json::Result<()> {
        if let Some(more) = &delta.partial_json {
            self.input.push_str(&more.0);
        }
        if let Some(citation) = delta.citation {
            let citations = self.fields.entry("citations").or_insert(Value::Null);
            if citations.is_null() {
                *citations = Value::Array(Vec::new());
            }
            if let Value::Array(citations) = citations {
                citations.push(serde_json::from_str(citation.get())?);
            }
        }
        if let Some(more) = &delta.signature {
            match self.fields.get_mut("signature") {
                Some(Value::String(signature)) => signature.push_str(&more.0),
                _ => drop(self.fields.insert("signature".into(), (*more.0).into())),
            }
        }
        for (kind, more) in [(Kind::Text, &delta.text), (Kind::Thinking, &delta.thinking)] {
            if let (Some(name), Some(more)) = (kind.name().filter(|_| kind != self.kind), more) {
                merge_field(&mut self.fields, name.into(), (*more.0).into());
            }
        }
        for (name, json) in &delta.rest {
            merge_field(&mut self.fields, name.0.to_string(), serde_json::from_str(json.get())?);
        }
        Ok(())
    }

    fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The id and the name, if it is a call of which both are known.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        if self.kind != Kind::ToolUse {
            return None;
        }
        let (id, name) = (self.text("id"), self.text("name"));
        (!id.is_empty() && !name.is_empty()).then_some((id, name))
    }

    pub(super) fn unspoken(&self) -> &str {
        self.input.get(self.spoken..).unwrap_or_default()
    }

    pub(super) fn speak(&mut self) {
        self.spoken = self.input.len();
    }

    /// The JSON of the whole block, of which no more comes. A call that was never named gets a name and an id.
    pub(super) fn end(&mut self, response: &str, at: usize) -> String {
        if let Some(name) = self.kind.name() {
            self.fields.entry("type").or_insert_with(|| name.into());
        }
        match self.kind {
            Kind::Text => drop(self.fields.insert("text".into(), std::mem::take(&mut self.said).into())),
            Kind::Thinking => drop(self.fields.insert("thinking".into(), std::mem::take(&mut self.said).into())),
            Kind::ToolUse => {
                if self.text("id").is_empty() {
                    self.fields.insert("id".into(), call_id(response, at).into());
                }
                if self.text("name").is_empty() {
                    self.fields.insert("name".into(), NAMELESS.into());
                }
                if self.input.is_empty() {
                    let input = self.fields.remove("input").filter(Value::is_object);
                    self.input = input.map_or_else(|| "{}".to_owned(), |input| input.to_string());
                }
            }
            Kind::Other => {}
        }
        serde_json::to_string(&Whole(self)).expect("its keys are texts and its numbers finite")
    }

    /// The block that was put together as `json`.
    pub(super) fn read(&self, json: &str, origin: &Origin) -> Block {
        let mut block = read::block(json, origin);
        if let (Block::ToolCall(call), Input::Invalid { text }) = (&mut block, Input::new(&self.input)) {
            text.clone_into(&mut call.arguments); // what the model wrote, not what the API takes for it
        }
        block
    }

    /// True if the block holds something that no delta carried.
    pub(super) fn says_more(&self, block: &Block) -> bool {
        says_more_than_deltas(block) || matches!(block, Block::ToolCall(call) if call.arguments != self.input)
    }
}

/// The block as it would have come whole.
struct Whole<'a>(&'a BlockFold);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(block) = self;
        let mut map = serializer.serialize_map(None)?;
        let has_input = !block.input.is_empty();
        let fields = block.fields.iter().filter(|(name, _)| !(has_input && *name == "input"));
        fields.into_iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        if has_input {
            map.serialize_entry("input", &Input::new(&block.input))?;
        }
        map.end()
    }
}
