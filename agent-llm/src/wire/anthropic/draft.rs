//! Accumulation of one block.

use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::messages::Messages;
use crate::wire::{
    alternating_roles::fold::{Call, Draft, Streamed},
    content::Input,
    lenient::{Str, text},
    merge::merge_field,
    open_struct::open_struct,
};

open_struct! {
    /// A delta of a block, or of the message.
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

/// Creates a block from its start, and returns its initial text, which is in the field named like
/// its kind.
///
/// # Errors
/// If the JSON is not an object.
pub(super) fn started(json: &RawValue) -> serde_json::Result<(Draft, String)> {
    let mut fields: Map<String, Value> = serde_json::from_str(json.get())?;
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = match fields.get_mut(&kind).filter(|_| [Messages::TEXT, Messages::THOUGHTS].contains(&&*kind)) {
        Some(Value::String(said)) => std::mem::take(said),
        _ => String::new(),
    };
    Ok((Draft::started(kind, fields), said))
}

impl Streamed for Messages {
    const TEXT: &'static str = "text";
    const THOUGHTS: &'static str = "thinking";
    const CALL: &'static str = "tool_use";
    const ID: &'static str = "id";

    type Delta<'a> = Delta<'a>;

    fn kind<'d>(delta: &'d Delta<'_>) -> Option<&'d str> {
        Some(match text(&delta.kind) {
            "text_delta" | "citations_delta" => Self::TEXT,
            "thinking_delta" | "signature_delta" => Self::THOUGHTS,
            "input_json_delta" => Self::CALL,
            _ => "",
        })
    }

    fn words<'d>(kind: &str, delta: &'d Delta<'_>) -> &'d str {
        text(if kind == Self::TEXT { &delta.text } else { &delta.thinking })
    }

    fn push(draft: &mut Draft, delta: &Delta<'_>) -> serde_json::Result<()> {
        draft.input.push_str(text(&delta.partial_json));
        if let Some(citation) = delta.citation {
            draft.cite(citation)?;
        }
        if let Some(more) = &delta.signature {
            draft.extend("signature", more);
        }
        for (kind, more) in [(Self::TEXT, &delta.text), (Self::THOUGHTS, &delta.thinking)] {
            if let Some(more) = more.as_ref().filter(|_| kind != draft.kind) {
                merge_field(&mut draft.fields, kind.into(), (*more.0).into());
            }
        }
        // Other fields of thinking deltas only describe progress: thinking is sent back as in a
        // non-streamed response.
        let rest = delta.rest.iter().filter(|_| draft.kind != Self::THOUGHTS);
        for (name, json) in rest.collect::<Vec<_>>() {
            merge_field(&mut draft.fields, name.0.to_string(), serde_json::from_str(json.get())?);
        }
        Ok(())
    }

    /// Calls of provider-side tools are streamed in deltas, too.
    fn json(draft: Draft, said: &str) -> Box<RawValue> {
        let Draft { kind, mut fields, .. } = draft;
        let mut input = Some(said).filter(|said| !said.is_empty()).map(Input::new);
        if [Self::TEXT, Self::THOUGHTS].contains(&&*kind) {
            fields.insert(kind.clone(), said.into());
            input = None;
        }
        if !kind.is_empty() {
            fields.entry("type").or_insert_with(|| kind.into());
        }
        if input.is_some() {
            fields.remove("input");
        }
        to_raw_value(&Call { fields, input }).expect("its keys are texts and its numbers finite")
    }
}
