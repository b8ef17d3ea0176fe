//! Putting one block together.

use agent_core::message::Origin;
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::read;
use crate::wire::{
    content::Input,
    ids::{NAMELESS, call_id},
    lenient::{Str, text},
    merge::merge_field,
    open_struct::open_struct,
    two_roles::fold::{Draft, Voice},
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

// The kinds of blocks that more is said of. The words of a text and of thoughts are in the field that is called like the kind.
const TEXT: &str = "text";
const THINKING: &str = "thinking";
const CALL: &str = "tool_use";
/// Any other kind.
const OTHER: &str = "";

impl Delta<'_> {
    /// The kind of block that this is more of; none if it may be any.
    fn kind(&self) -> Option<&'static str> {
        match text(&self.kind) {
            "text_delta" | "citations_delta" => Some(TEXT),
            "thinking_delta" | "signature_delta" => Some(THINKING),
            "input_json_delta" => Some(CALL),
            _ => None,
        }
    }
}

/// A block under way.
#[derive(Debug, Default)]
pub(super) struct Block {
    kind: &'static str,
    has_started: bool,
    /// What it began with, and what came but for what it says.
    fields: Map<String, Value>,
}

impl Block {
    /// A block that begins as this JSON, and what it says already.
    pub(super) fn started(json: &str) -> serde_json::Result<(Self, String)> {
        let mut fields: Map<String, Value> = serde_json::from_str(json)?;
        let kind = fields.get("type").and_then(|kind| [TEXT, THINKING, CALL].into_iter().find(|known| kind == *known));
        let said = match kind.filter(|kind| *kind != CALL).and_then(|kind| fields.get_mut(kind)) {
            Some(Value::String(said)) => std::mem::take(said),
            _ => String::new(),
        };
        Ok((Self { kind: kind.unwrap_or(OTHER), has_started: true, fields }, said))
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Draft for Block {
    type Delta<'a> = Delta<'a>;

    fn unstarted(delta: &Delta<'_>) -> Option<Self> {
        Some(Self { kind: delta.kind().unwrap_or(OTHER), ..Self::default() })
    }

    fn takes(&self, delta: &Delta<'_>) -> bool {
        self.kind == OTHER || delta.kind().is_none_or(|kind| kind == self.kind)
    }

    /// Of a call, too, that has no id yet.
    fn goes_on_with(&self, start: &Self, has_said: bool) -> bool {
        let is_same = self.kind == start.kind;
        match self.has_started {
            true => is_same && self.kind == CALL && self.field("id").is_empty(),
            false => is_same || !has_said,
        }
    }

    /// A call that begins again under the same id, or under none, is the one that is under way.
    fn is_repeated_by(&self, start: &Self) -> bool {
        let (id, known) = (start.field("id"), self.field("id"));
        self.kind == CALL && start.kind == CALL && (id.is_empty() || id == known)
    }

    fn adopt(&mut self, start: Self) {
        let more = std::mem::replace(self, start).fields;
        more.into_iter().for_each(|(name, value)| merge_field(&mut self.fields, name, value));
    }

    fn voice(&self) -> Voice {
        match self.kind {
            TEXT => Voice::Text,
            THINKING => Voice::Thoughts,
            _ => Voice::Silent,
        }
    }

    fn words<'d>(&self, delta: &'d Delta<'_>) -> &'d str {
        text(if self.kind == TEXT { &delta.text } else { &delta.thinking })
    }

    fn push(&mut self, delta: &Delta<'_>, input: &mut String) -> serde_json::Result<()> {
        input.push_str(text(&delta.partial_json));
        if let Some(citation) = delta.citation {
            match self.fields.entry("citations").or_insert(Value::Null) {
                Value::Array(citations) => citations.push(serde_json::from_str(citation.get())?),
                none if none.is_null() => *none = json!([serde_json::from_str::<Value>(citation.get())?]),
                _ => {}
            }
        }
        if let Some(more) = &delta.signature {
            match self.fields.get_mut("signature") {
                Some(Value::String(signature)) => signature.push_str(&more.0),
                _ => drop(self.fields.insert("signature".into(), (*more.0).into())),
            }
        }
        for (kind, more) in [(TEXT, &delta.text), (THINKING, &delta.thinking)] {
            if let Some(more) = more.as_ref().filter(|_| kind != self.kind) {
                merge_field(&mut self.fields, kind.into(), (*more.0).into());
            }
        }
        for (name, json) in &delta.rest {
            merge_field(&mut self.fields, name.0.to_string(), serde_json::from_str(json.get())?);
        }
        Ok(())
    }

    fn call(&self) -> Option<(&str, &str)> {
        let (id, name) = (self.field("id"), self.field("name"));
        (self.kind == CALL && !id.is_empty() && !name.is_empty()).then_some((id, name))
    }

    /// A call that was never named gets a name and an id; one without arguments so far, those that it began with.
    fn end(&mut self, response: &str, at: usize, lacks_arguments: bool, input: &mut String) {
        if self.kind != OTHER {
            self.fields.entry("type").or_insert_with(|| self.kind.into());
        }
        if self.kind != CALL {
            return;
        }
        if self.field("id").is_empty() {
            self.fields.insert("id".into(), call_id(response, at).into());
        }
        if self.field("name").is_empty() {
            self.fields.insert("name".into(), NAMELESS.into());
        }
        if lacks_arguments && input.is_empty() {
            let begun = self.fields.remove("input").filter(Value::is_object);
            *input = begun.map_or_else(|| "{}".to_owned(), |begun| begun.to_string());
        }
    }

    fn json(&mut self, said: &str, input: &str) -> String {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            fields: &'a Map<String, Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            input: Option<Input<'a>>,
        }

        if matches!(self.kind, TEXT | THINKING) {
            self.fields.insert(self.kind.into(), said.into());
        }
        // What a call of the provider's own is called with, nobody hears.
        let input = Some(if self.kind == CALL { said } else { input }).filter(|input| !input.is_empty());
        if input.is_some() {
            self.fields.remove("input");
        }
        let whole = Whole { fields: &self.fields, input: input.map(Input::new) };
        serde_json::to_string(&whole).expect("its keys are texts and its numbers finite")
    }

    fn read(json: &str, origin: &Origin) -> agent_core::Block {
        read::block(json, origin)
    }

    fn says_nothing(block: &agent_core::Block) -> bool {
        read::says_nothing(block)
    }
}
