//! Putting one block together.

use agent_core::{Block, message::Origin};
use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::{Map, Value, value::RawValue};

use super::read;
use crate::wire::{
    content::Input,
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

    /// The field of a block that has its words.
    fn said(self) -> Option<&'static str> {
        self.name().filter(|_| matches!(self, Self::Text | Self::Thinking))
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
    has_started: bool,
    /// What it began with, and what came but for what it says.
    fields: Map<String, Value>,
    /// What of a call's arguments has not been spoken.
    pub(super) input: String,
    /// The block as it would have come whole, once it has ended.
    pub(super) json: String,
}

impl BlockFold {
    /// A block of which a delta came first.
    pub(super) fn unstarted(index: u64, kind: Kind) -> Self {
        Self { index, kind, has_started: false, fields: Map::new(), input: String::new(), json: String::new() }
    }

    /// A block that came whole, as this JSON.
    pub(super) fn whole(json: &str) -> Self {
        Self { json: json.to_owned(), ..Self::unstarted(0, Kind::Other) }
    }

    /// A block that begins as this JSON, and what it says already.
    pub(super) fn started(index: u64, json: &str) -> serde_json::Result<(Self, String)> {
        let mut fields: Map<String, Value> = serde_json::from_str(json)?;
        let kind = Kind::of(fields.get("type").and_then(Value::as_str).unwrap_or_default());
        let said = match kind.said().and_then(|name| fields.get_mut(name)) {
            Some(Value::String(said)) => std::mem::take(said),
            _ => String::new(),
        };
        Ok((Self { has_started: true, fields, ..Self::unstarted(index, kind) }, said))
    }

    /// True if the block came before its start, which is this, or is a call that has no id yet.
    pub(super) fn goes_on_with(&self, start: &Self, has_said: bool) -> bool {
        let is_same = self.kind == start.kind;
        match self.has_started {
            true => is_same && self.kind == Kind::ToolUse && self.text("id").is_empty(),
            false => is_same || !has_said,
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

    /// Takes what is not the block's words.
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

    /// No more of the block comes. A call that was never named gets a name and an id; one without `arguments` so far, those
    /// that it began with.
    pub(super) fn end(&mut self, response: &str, at: usize, lacks_arguments: bool) {
        if let Some(name) = self.kind.name() {
            self.fields.entry("type").or_insert_with(|| name.into());
        }
        if let Some(said) = self.kind.said() {
            self.fields.entry(said).or_insert_with(|| "".into());
        }
        if self.kind != Kind::ToolUse {
            return;
        }
        if self.text("id").is_empty() {
            self.fields.insert("id".into(), call_id(response, at).into());
        }
        if self.text("name").is_empty() {
            self.fields.insert("name".into(), NAMELESS.into());
        }
        if lacks_arguments && self.input.is_empty() {
            let input = self.fields.remove("input").filter(Value::is_object);
            self.input = input.map_or_else(|| "{}".to_owned(), |input| input.to_string());
        }
    }

    /// The JSON of the whole block, which has said this.
    pub(super) fn written(&self, said: &str) -> String {
        serde_json::to_string(&Whole { block: self, said }).expect("its keys are texts and its numbers finite")
    }

    /// The block, which was put together.
    pub(super) fn read(&self, said: &str, origin: &Origin) -> Block {
        let mut block = read::block(&self.json, origin);
        if let (Block::ToolCall(call), Input::Invalid { text }) = (&mut block, Input::new(said)) {
            text.clone_into(&mut call.arguments); // what the model wrote, not what the API takes for it
        }
        block
    }
}

/// The block as it would have come whole.
struct Whole<'a> {
    block: &'a BlockFold,
    said: &'a str,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { block: BlockFold { kind, fields, input, .. }, said } = self;
        // What a call of the provider's own is called with, nobody hears.
        let input = if *kind == Kind::ToolUse { said } else { input.as_str() };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in fields {
            match name.as_str() {
                "input" if !input.is_empty() => {}
                name if Some(name) == kind.said() => map.serialize_entry(name, said)?,
                name => map.serialize_entry(name, value)?,
            }
        }
        if !input.is_empty() {
            map.serialize_entry("input", &Input::new(input))?;
        }
        map.end()
    }
}
