//! Writing what the model said, as far as possible in the words of its provider.

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Raw, Reasoning},
};
use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::value::RawValue;

use super::{
    message::Manner,
    parts::{PartJson, Said, own_media, own_text, text_json},
    read::{ORDER, read},
    read_call, read_part,
};
use crate::wire::{json::write as write_json, lenient::Str, open_struct::open_struct};

open_struct! {
    /// The provider's message: the fields that blocks speak of, and the rest.
    Sent {
        _role: &'a RawValue = "role",
        content: &'a RawValue = "content",
        reasoning_content: &'a RawValue = "reasoning_content",
        reasoning: &'a RawValue = "reasoning",
        tool_plan: &'a RawValue = "tool_plan",
        _reasoning_details: &'a RawValue = "reasoning_details",
        _refusal: &'a RawValue = "refusal",
        audio: SpeechSaid<'a> = "audio",
        images: &'a RawValue = "images",
        _tool_calls: &'a RawValue = "tool_calls",
    }
}

open_struct! {
    SpeechSaid { id: Str<'a> = "id", }
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
        // Speech goes back by its id.
        Some(raw) if manner.verbatim && !message.is_edited() && !message.blocks().iter().any(is_speech) => {
            out.extend_from_slice(raw.json().as_bytes());
        }
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
        let content = self.content(sent.as_ref());
        // Who leaves it out beside calls takes it back left out.
        if content.is_some() || sent.as_ref().is_none_or(|sent| sent.content.is_some()) {
            map.serialize_entry("content", &content)?;
        }
        if let Some(sent) = &sent {
            self.serialize_reasoning(sent, &mut map)?;
            if let Some(id) = sent.audio.as_ref().and_then(|speech| speech.id.as_ref()).filter(|id| !id.is_empty()) {
                map.serialize_entry("audio", &SpeechJson { id: &id.0 })?;
            }
            if sent.images.is_some() {
                map.serialize_entry("images", &self.images())?;
            }
        }
        if self.message.has_calls() {
            map.serialize_entry("tool_calls", &Calls(self))?;
        }
        if let Some(sent) = sent.filter(|_| self.manner.verbatim) {
            sent.rest.iter().try_for_each(|(name, json)| map.serialize_entry(name, json))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct SpeechJson<'a> {
    id: &'a str,
}

/// True for the sound of a spoken answer, whose words are a text beside it.
fn is_speech(block: &Block) -> bool {
    matches!(block, Block::Document(media) if media.is_audio())
}

struct Calls<'a>(&'a Projection<'a>);

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.message.calls().map(|call| self.0.call(call)))
    }
}

impl Projection<'_> {
    /// `null` beside calls, if there is nothing else: the API takes no empty text there, and no missing one elsewhere.
    fn content(&self, sent: Option<&Sent<'_>>) -> Option<Said<'_>> {
        let in_parts = sent.and_then(|sent| sent.content).is_some_and(|json| json.get().starts_with('['));
        let needs_parts = |block: &Block| match block {
            Block::Text(text) => {
                own_text(self.manner, text).is_some() || self.manner.cache_control(text.cache).is_some()
            }
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
                block if is_speech(block) => continue,
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
            Block::Text(text) => Some(text_json(self.manner, text)),
            Block::Reasoning(reasoning) => self.thinking(reasoning).map(PartJson::Raw),
            Block::Image(media) | Block::Document(media) => own_media(self.manner, media).map(PartJson::Raw),
            Block::Other(raw) => self.manner.own(Some(raw)).filter(|json| is_part(json)).map(PartJson::Raw),
            _ => None,
        }
    }

    /// Thinking that is a part, if it was not edited: its provider takes back only its own.
    fn thinking<'a>(&self, reasoning: &'a Reasoning) -> Option<&'a RawValue> {
        let own = self.manner.own(reasoning.raw.as_ref()).filter(|json| is_part(json))?;
        let was = read_part::part(own, &self.manner.origin);
        matches!(was, Ok(Block::Reasoning(was)) if was.text == reasoning.text).then_some(own)
    }

    /// Reasoning that stands in a field of its own, and not among the parts of the content.
    fn beside_content<'a>(&self, block: &'a Block) -> Option<&'a Reasoning> {
        let Block::Reasoning(reasoning) = block else { return None };
        let is_of_content = self.manner.own(reasoning.raw.as_ref()).is_some_and(is_part);
        (!is_of_content).then_some(reasoning)
    }

    /// In the provider's own spelling.
    fn serialize_reasoning<M: SerializeMap>(&self, sent: &Sent<'_>, map: &mut M) -> Result<(), M::Error> {
        let reasoning = self.message.blocks().iter().filter_map(|block| self.beside_content(block));
        let text: String = reasoning.clone().map(|r| r.text.as_str()).collect();
        for (name, sent) in [
            ("reasoning_content", sent.reasoning_content),
            ("reasoning", sent.reasoning),
            ("tool_plan", sent.tool_plan),
        ] {
            if sent.is_some() && !text.is_empty() {
                map.serialize_entry(name, &text)?;
            }
        }
        let details =
            reasoning.filter_map(|r| self.manner.own(r.raw.as_ref())).find(|json| json.get().starts_with('['));
        match details {
            // They say it once more, and prove what was said first.
            Some(details) if self.thought() == text => map.serialize_entry("reasoning_details", details),
            _ => Ok(()),
        }
    }

    /// The reasoning as the provider sent it.
    fn thought(&self) -> String {
        let was = self.own.and_then(|own| read(own.raw_value(), &self.manner.origin, "", ORDER).ok());
        let blocks = was.map(|was| was.blocks).unwrap_or_default();
        blocks.iter().filter_map(|block| Some(self.beside_content(block)?.text.as_str())).collect()
    }

    fn images(&self) -> Vec<&RawValue> {
        let images = self.message.blocks().iter().filter_map(|block| match block {
            Block::Image(media) => own_media(self.manner, media),
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
                    id: self.manner.call_id(&call.id, self.own.is_some()),
                    r#type: "function",
                    function: FunctionJson { name: &call.name, arguments },
                }
            }
        }
    }

    /// True if the provider's JSON is still of this call: it may have been edited.
    fn still_says(&self, own: &RawValue, call: &ToolCall) -> bool {
        read_call::call(own, &self.manner.origin)
            .is_ok_and(|was| (&was.id, &was.name, &was.arguments) == (&call.id, &call.name, &call.arguments))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallJson<'a> {
    Raw(&'a RawValue),
    Call { id: Cow<'a, str>, r#type: &'static str, function: FunctionJson<'a> },
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
