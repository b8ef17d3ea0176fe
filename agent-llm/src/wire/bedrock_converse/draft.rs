//! Putting one block together.

use agent_core::{Block, message::Origin};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::read;
use crate::wire::{
    content::Input,
    lenient::Str,
    merge::{merge_field, merge_fields},
    open_struct::open_struct,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
    Call,
    Other(String),
}

impl Kind {
    pub(super) fn of(field: &str) -> Self {
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
    pub(super) fn of(&self) -> Option<Kind> {
        match self {
            Self { text: Some(_), .. } | Self { citation: Some(_), .. } => Some(Kind::Text),
            Self { reasoning: Some(_), .. } => Some(Kind::Reasoning),
            Self { call: Some(_), .. } => Some(Kind::Call),
            Self { rest, .. } => rest.first().map(|(name, _)| Kind::of(&name.0)),
        }
    }

    /// The words that come with it.
    pub(super) fn words(&self) -> &str {
        let reasoning = self.reasoning.as_ref().and_then(|reasoning| reasoning.text.as_ref());
        self.text.as_ref().or(reasoning).map_or("", |words| &words.0)
    }
}

/// A block under way.
#[derive(Debug)]
pub(super) struct Draft {
    /// The provider's number for it, which another block may have later.
    pub(super) index: u64,
    pub(super) kind: Kind,
    /// What came of it but for what it says.
    fields: Map<String, Value>,
    citations: Vec<Value>,
    redacted: String,
    /// What of a call's arguments has not been spoken.
    pub(super) input: String,
    /// The block as it would have come whole, once it has ended.
    pub(super) json: String,
}

impl Draft {
    pub(super) fn new(index: u64, kind: Kind, fields: Map<String, Value>) -> Self {
        let (citations, redacted, input, json) = (Vec::new(), String::new(), String::new(), String::new());
        Self { index, kind, fields, citations, redacted, input, json }
    }

    /// A block that came whole.
    pub(super) fn whole(json: &str) -> Self {
        Self { json: json.to_owned(), ..Self::new(0, Kind::Text, Map::new()) }
    }

    /// True if the block may begin as `start` does: of a call came the arguments first.
    pub(super) fn is_begun_by(&self, start: &Self) -> bool {
        self.kind == start.kind && self.text("toolUseId").is_empty()
    }

    pub(super) fn adopt(&mut self, start: Self) {
        merge_fields(&mut self.fields, start.fields);
    }

    /// Takes what is not the block's words.
    pub(super) fn push(&mut self, delta: &Delta<'_>) -> serde_json::Result<()> {
        if let Some(citation) = delta.citation {
            self.citations.push(serde_json::from_str(citation.get())?);
        }
        if let Some(call) = &delta.call {
            self.input.push_str(call.input.as_ref().map_or("", |input| &input.0));
            self.keep(&call.rest)?;
        }
        if let Some(reasoning) = &delta.reasoning {
            self.redacted.push_str(reasoning.redacted.as_ref().map_or("", |data| &data.0));
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

    /// The id and the name, if it is a call that is to be answered, of which both are known.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        let (id, name) = (self.text("toolUseId"), self.text("name"));
        let is_ours = self.kind == Kind::Call && !read::is_servers(self.text("type"));
        (is_ours && !id.is_empty() && !name.is_empty()).then_some((id, name))
    }

    /// No more of the block comes, which has said this.
    pub(super) fn end(&mut self, said: &str) {
        let said = if said.is_empty() { &self.input } else { said };
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
            Kind::Call => {
                self.json = call_json(fields, said);
                return;
            }
            Kind::Other(name) => json!({name: fields}),
        };
        self.json = json.to_string();
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
