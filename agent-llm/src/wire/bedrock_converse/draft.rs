//! Putting one block together.

use agent_core::message::Origin;
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::read;
use crate::wire::{
    content::Input,
    lenient::{Str, text},
    merge::{merge_field, merge_fields},
    open_struct::open_struct,
    two_roles::fold::{Draft, Voice},
};

open_struct! {
    /// More of a block: one of these fields.
    Delta {
        text: Str<'a> = "text",
        reasoning: ReasoningDelta<'a> = "reasoningContent",
        call: CallDelta<'a> = "toolUse",
        citation: &'a RawValue = "citation",
    }
}

open_struct! {
    ReasoningDelta { text: Str<'a> = "text", signature: Str<'a> = "signature", redacted: Str<'a> = "redactedContent", }
}

open_struct! {
    CallDelta { input: Str<'a> = "input", }
}

/// What a block is: the field of the API's union.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Reasoning,
    Call,
    Other(String),
}

impl Kind {
    fn of(field: &str) -> Self {
        match field {
            "text" => Self::Text,
            "reasoningContent" => Self::Reasoning,
            "toolUse" => Self::Call,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Delta<'_> {
    /// The kind of block that this is more of; none if it says nothing.
    fn kind(&self) -> Option<Kind> {
        match self {
            Self { text: Some(_), .. } | Self { citation: Some(_), .. } => Some(Kind::Text),
            Self { reasoning: Some(_), .. } => Some(Kind::Reasoning),
            Self { call: Some(_), .. } => Some(Kind::Call),
            Self { rest, .. } => rest.first().map(|(name, _)| Kind::of(&name.0)),
        }
    }
}

/// A block under way.
#[derive(Debug, Default)]
pub(super) struct Block {
    kind: Kind,
    /// What came of it but for what it says.
    fields: Map<String, Value>,
    citations: Vec<Value>,
    redacted: String,
}

impl Block {
    /// A block of this kind that begins with these fields.
    pub(super) fn started(kind: &str, fields: Map<String, Value>) -> Self {
        Self { kind: Kind::of(kind), fields, ..Self::default() }
    }

    /// Keeps what is not understood. Of the block's own field, a list is more of its content.
    fn keep(&mut self, fields: &[(Str<'_>, &RawValue)]) -> serde_json::Result<()> {
        for (name, json) in fields {
            let is_own = self.kind == Kind::of(&name.0);
            match serde_json::from_str(json.get())? {
                Value::Object(more) if is_own => merge_fields(&mut self.fields, more),
                Value::Array(more) if is_own => match self.fields.entry("content").or_insert_with(|| json!([])) {
                    Value::Array(content) => content.extend(more),
                    other => *other = Value::Array(more),
                },
                value => merge_field(&mut self.fields, name.0.to_string(), value),
            }
        }
        Ok(())
    }

    fn text(&self, field: &str) -> &str {
        self.fields.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Draft for Block {
    type Delta<'a> = Delta<'a>;

    fn unstarted(delta: &Delta<'_>) -> Option<Self> {
        Some(Self { kind: delta.kind()?, ..Self::default() })
    }

    fn takes(&self, delta: &Delta<'_>) -> bool {
        delta.kind().is_none_or(|kind| kind == self.kind)
    }

    /// Of a call came the arguments first.
    fn goes_on_with(&self, start: &Self, _has_said: bool) -> bool {
        self.kind == start.kind && self.text("toolUseId").is_empty()
    }

    fn adopt(&mut self, start: Self) {
        merge_fields(&mut self.fields, start.fields);
    }

    fn voice(&self) -> Voice {
        match self.kind {
            Kind::Text => Voice::Text,
            Kind::Reasoning => Voice::Thoughts,
            Kind::Call | Kind::Other(_) => Voice::Silent,
        }
    }

    fn words<'d>(&self, delta: &'d Delta<'_>) -> &'d str {
        let reasoning = delta.reasoning.as_ref().map_or("", |reasoning| text(&reasoning.text));
        if self.kind == Kind::Text { text(&delta.text) } else { reasoning }
    }

    fn push(&mut self, delta: &Delta<'_>, input: &mut String) -> serde_json::Result<()> {
        if let Some(citation) = delta.citation {
            self.citations.push(serde_json::from_str(citation.get())?);
        }
        if let Some(call) = &delta.call {
            input.push_str(text(&call.input));
            self.keep(&call.rest)?;
        }
        if let Some(reasoning) = &delta.reasoning {
            self.redacted.push_str(text(&reasoning.redacted));
            if let Some(more) = &reasoning.signature {
                match self.fields.get_mut("signature") {
                    Some(Value::String(signature)) => signature.push_str(&more.0),
                    _ => drop(self.fields.insert("signature".into(), (*more.0).into())),
                }
            }
            self.keep(&reasoning.rest)?;
        }
        self.keep(&delta.rest)
    }

    /// One that is to be answered.
    fn call(&self) -> Option<(&str, &str)> {
        let (id, name) = (self.text("toolUseId"), self.text("name"));
        let is_ours = self.kind == Kind::Call && !read::is_servers(self.text("type"));
        (is_ours && !id.is_empty() && !name.is_empty()).then_some((id, name))
    }

    fn json(&mut self, said: &str, input: &str) -> String {
        let said = if said.is_empty() { input } else { said };
        let fields = &self.fields;
        let json = match &self.kind {
            Kind::Text if self.citations.is_empty() => with("text", said.into(), fields),
            Kind::Text => {
                with("citationsContent", json!({"citations": self.citations, "content": [{"text": said}]}), fields)
            }
            Kind::Reasoning => {
                let mut content = Map::new();
                if self.redacted.is_empty() || !said.is_empty() {
                    content.insert("reasoningText".into(), with("text", said.into(), fields));
                }
                if !self.redacted.is_empty() {
                    content.insert("redactedContent".into(), self.redacted.as_str().into());
                }
                json!({"reasoningContent": content})
            }
            Kind::Call => return call_json(fields, said),
            Kind::Other(name) => json!({name: fields}),
        };
        json.to_string()
    }

    fn read(json: &str, origin: &Origin) -> agent_core::Block {
        read::block(json, origin)
    }

    fn says_nothing(block: &agent_core::Block) -> bool {
        read::says_nothing(block)
    }
}

/// The object of this field and of others.
fn with(name: &str, value: Value, fields: &Map<String, Value>) -> Value {
    let mut object = fields.clone();
    object.insert(name.to_owned(), value);
    Value::Object(object)
}

/// A call with these arguments; without any, with those that it began with.
fn call_json(fields: &Map<String, Value>, arguments: &str) -> String {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(rename = "toolUse")]
        call: Call<'a>,
    }
    #[derive(Serialize)]
    struct Call<'a> {
        #[serde(flatten)]
        fields: Map<String, Value>,
        input: Input<'a>,
    }
    let mut fields = fields.clone();
    let begun = fields.remove("input").filter(Value::is_object).map(|input| input.to_string()).unwrap_or_default();
    let input = Input::new(if arguments.is_empty() { &begun } else { arguments });
    serde_json::to_string(&Whole { call: Call { fields, input } }).expect("its keys are texts")
}
