//! Accumulation of one block.

use std::collections::BTreeMap;

use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{messages::Converse, read};
use crate::wire::{
    alternating_roles::fold::{Call, Draft, Streamed},
    content::Input,
    lenient::{Str, text},
    merge::{merge_field, merge_fields},
    open_struct::open_struct,
};

open_struct! {
    /// A delta of a block: one of these fields.
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

/// Keeps unknown fields. A list in the block's own field extends its content.
fn keep(draft: &mut Draft, fields: &[(Str<'_>, &RawValue)]) -> serde_json::Result<()> {
    for (name, json) in fields {
        let is_own = *draft.kind == *name.0;
        match serde_json::from_str(json.get())? {
            Value::Object(more) if is_own => merge_fields(&mut draft.fields, more),
            Value::Array(more) if is_own => match draft.fields.entry("content").or_insert_with(|| json!([])) {
                Value::Array(content) => content.extend(more),
                other => *other = Value::Array(more),
            },
            value => merge_field(&mut draft.fields, name.0.to_string(), value),
        }
    }
    Ok(())
}

/// The kinds of blocks are the fields of the API's union.
impl Streamed for Converse {
    const TEXT: &'static str = "text";
    const THOUGHTS: &'static str = "reasoningContent";
    const CALL: &'static str = "toolUse";
    const ID: &'static str = "toolUseId";

    type Delta<'a> = Delta<'a>;

    fn kind<'d>(delta: &'d Delta<'_>) -> Option<&'d str> {
        match delta {
            Delta { text: Some(_), .. } | Delta { citation: Some(_), .. } => Some(Self::TEXT),
            Delta { reasoning: Some(_), .. } => Some(Self::THOUGHTS),
            Delta { call: Some(_), .. } => Some(Self::CALL),
            Delta { rest, .. } => rest.first().map(|(name, _)| &*name.0),
        }
    }

    fn words<'d>(kind: &str, delta: &'d Delta<'_>) -> &'d str {
        let reasoning = delta.reasoning.as_ref().map_or("", |reasoning| text(&reasoning.text));
        if kind == Self::TEXT { text(&delta.text) } else { reasoning }
    }

    fn push(draft: &mut Draft, delta: &Delta<'_>) -> serde_json::Result<()> {
        if let Some(citation) = delta.citation {
            draft.cite(citation)?;
        }
        if let Some(call) = &delta.call {
            draft.input.push_str(text(&call.input));
            keep(draft, &call.rest)?;
        }
        if let Some(reasoning) = &delta.reasoning {
            for (field, more) in [("redactedContent", &reasoning.redacted), ("signature", &reasoning.signature)] {
                if let Some(more) = more {
                    draft.extend(field, more);
                }
            }
            keep(draft, &reasoning.rest)?;
        }
        keep(draft, &delta.rest)
    }

    fn is_ours(draft: &Draft) -> bool {
        !read::is_servers(draft.field("type"))
    }

    fn json(draft: Draft, said: &str) -> Box<RawValue> {
        let Draft { kind, mut fields, .. } = draft;
        let block = match &*kind {
            Self::TEXT => match fields.remove("citations") {
                Some(citations) => {
                    // The API rejects empty texts, but sends citations without a text.
                    let content = (!said.is_empty()).then(|| ("content", json!([{"text": said}])));
                    let cited: Vec<_> = [("citations", citations)].into_iter().chain(content).collect();
                    json!({"citationsContent": with(fields, &cited)})
                }
                None => with(fields, &[("text", said.into())]),
            },
            Self::THOUGHTS => {
                let redacted = fields.remove("redactedContent");
                let thoughts = (redacted.is_none() || !said.is_empty()).then(|| with(fields, &[("text", said.into())]));
                let content = [("reasoningText", thoughts), ("redactedContent", redacted)];
                let content = content.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                json!({"reasoningContent": content.collect::<Map<_, _>>()})
            }
            Self::CALL => {
                fields.remove("input");
                let call = Call { fields, input: Some(Input::new(said)) };
                return to_raw_value(&BTreeMap::from([(Self::CALL, call)])).expect("its keys are texts");
            }
            _ => json!({kind: fields}),
        };
        to_raw_value(&block).expect("its keys are texts")
    }
}

/// Merges these fields into an object.
fn with(mut fields: Map<String, Value>, more: &[(&str, Value)]) -> Value {
    fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Object(fields)
}
