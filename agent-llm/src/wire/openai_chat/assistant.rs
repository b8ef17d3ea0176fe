//! Writing what the model said, as far as possible in the words of its provider.

use std::borrow::Cow;

use agent_core::{AssistantMessage, Block, Raw, ToolCall};
use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::value::RawValue;

use super::{
    message::Manner,
    parts::{PartJson, Said},
    read,
};
use crate::wire::{json::write as write_json, lenient::Str, open_struct::open_struct};

open_struct! {
    /// The provider's message: the fields that blocks speak of, and the rest.
    Sent {
        _role: &'a RawValue = "role",
        content: &'a RawValue = "content",
        reasoning_content: &'a RawValue = "reasoning_content",
        reasoning: &'a RawValue = "reasoning",
        _reasoning_details: &'a RawValue = "reasoning_details",
        _refusal: &'a RawValue = "refusal",
        images: &'a RawValue = "images",
        _tool_calls: &'a RawValue = "tool_calls",
    }
}

open_struct! {
    Typed { kind: Str<'a> = "type", }
}

/// Writes `message`:
///
/// * as its provider sent it, if this is the provider and nobody edited it;
/// * if it was edited, with the blocks for the fields that they speak of, and the provider's own for the others;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back.
pub(super) fn write(manner: &Manner, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| manner.knows(raw));
    match own {
        Some(raw) if manner.verbatim && !message.is_edited() => out.extend_from_slice(raw.json().as_bytes()),
        _ => write_json(&Projection { manner, message, own }, out),
    }
}

struct Projection<'a> {
    manner: &'a Manner,
    message: &'a AssistantMessage,
    own: Option<&'a Raw>,
}

impl Serialize for Projection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sent: Option<Sent<'_>> = self.own.and_then(|raw| serde_json::from_str(raw.json()).ok());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        map.serialize_entry("content", &self.content(sent.as_ref()))?;
        if let Some(sent) = &sent {
            self.serialize_reasoning(sent, &mut map)?;
            if sent.images.is_some() {
                map.serialize_entry("images", &self.images())?;
            }
        }
        let calls: Vec<_> = self.message.calls().map(|call| self.call(call)).collect();
        if !calls.is_empty() {
            map.serialize_entry("tool_calls", &calls)?;
        }
        if let Some(sent) = sent.filter(|_| self.manner.verbatim) {
            sent.rest.iter().try_for_each(|(name, json)| map.serialize_entry(name, json))?;
        }
        map.end()
    }
}

impl Projection<'_> {
    /// `null` beside calls, if there is nothing else: the API takes no empty text there, and no missing one elsewhere.
    fn content(&self, sent: Option<&Sent<'_>>) -> Option<Said<'_>> {
        let in_parts = sent.and_then(|sent| sent.content).is_some_and(|json| json.get().starts_with('['));
        let needs_parts = |block: &Block| match block {
            Block::Text(text) => self.manner.own(text.raw.as_ref()).is_some(),
            Block::Other(raw) => self.manner.own(Some(raw)).is_some_and(is_part),
            _ => false,
        };
        if in_parts || self.message.blocks().iter().any(needs_parts) {
            return Some(Said::Parts(self.message.blocks().iter().filter_map(|b| self.part(b)).collect()));
        }
        let keeps_images = sent.is_some_and(|sent| sent.images.is_some());
        let mut all = Cow::Borrowed("");
        for block in self.message.blocks() {
            let text = match block {
                Block::Text(text) => text.text.as_str(),
                // The API takes no images of the model's own: that there was one is said.
                Block::Image(_) if !keeps_images => "[image]",
                Block::Document(_) => "[document]",
                _ => continue,
            };
            if !all.is_empty() {
                all += "\n";
            }
            all += text;
        }
        if all.is_empty() && self.message.has_calls() { None } else { Some(Said::Text(all)) }
    }

    fn part<'a>(&self, block: &'a Block) -> Option<PartJson<'a>> {
        match block {
            Block::Text(text) => {
                let own = self.manner.own(text.raw.as_ref());
                Some(own.map_or(PartJson::Text { text: Cow::Borrowed(&text.text) }, PartJson::Raw))
            }
            Block::Reasoning(reasoning) => {
                self.manner.own(reasoning.raw.as_ref()).filter(|j| is_part(j)).map(PartJson::Raw)
            }
            Block::Image(media) | Block::Document(media) => self.manner.own(media.raw.as_ref()).map(PartJson::Raw),
            Block::Other(raw) => self.manner.own(Some(raw)).filter(|json| is_part(json)).map(PartJson::Raw),
            _ => None,
        }
    }

    /// In the provider's own spelling.
    fn serialize_reasoning<M: SerializeMap>(&self, sent: &Sent<'_>, map: &mut M) -> Result<(), M::Error> {
        let reasoning = self.message.blocks().iter().filter_map(|block| match block {
            Block::Reasoning(reasoning) => Some(reasoning),
            _ => None,
        });
        let text: String = reasoning.clone().map(|r| r.text.as_str()).collect();
        for (name, sent) in [("reasoning_content", sent.reasoning_content), ("reasoning", sent.reasoning)] {
            if sent.is_some() && !text.is_empty() {
                map.serialize_entry(name, &text)?;
            }
        }
        let details =
            reasoning.filter_map(|r| self.manner.own(r.raw.as_ref())).find(|json| json.get().starts_with('['));
        if let Some(details) = details {
            map.serialize_entry("reasoning_details", details)?;
        }
        Ok(())
    }

    fn images(&self) -> Vec<&RawValue> {
        let images = self.message.blocks().iter().filter_map(|block| match block {
            Block::Image(media) => self.manner.own(media.raw.as_ref()),
            _ => None,
        });
        images.collect()
    }

    fn call<'a>(&self, call: &'a ToolCall) -> CallJson<'a> {
        match self.manner.own(call.raw.as_ref()) {
            Some(own) if self.still_says(own, call) => CallJson::Raw(own),
            _ => {
                // Some models leave out arguments that there are none of, and other servers then refuse them.
                let arguments = if call.arguments.is_empty() && self.own.is_none() { "{}" } else { &call.arguments };
                CallJson::Call {
                    id: &call.id,
                    r#type: "function",
                    function: FunctionJson { name: &call.name, arguments },
                }
            }
        }
    }

    /// True if the provider's JSON is still of this call: it may have been edited.
    fn still_says(&self, own: &RawValue, call: &ToolCall) -> bool {
        read::call(own.get(), &self.manner.origin)
            .is_ok_and(|was| (&was.id, &was.name, &was.arguments) == (&call.id, &call.name, &call.arguments))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallJson<'a> {
    Raw(&'a RawValue),
    Call { id: &'a str, r#type: &'static str, function: FunctionJson<'a> },
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// True if the JSON is a part of a content.
fn is_part(json: &RawValue) -> bool {
    serde_json::from_str::<Typed<'_>>(json.get()).is_ok_and(|typed| typed.kind.is_some())
}
