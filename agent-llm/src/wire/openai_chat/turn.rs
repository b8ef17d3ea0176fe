//! Encoding of the model's turns, as far as possible with the provider's own JSON.

use std::collections::BTreeMap;

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Raw, Reasoning},
};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    messages::{MessageStyle, Said},
    parts::{is_plain, own_media, part, text_json},
    read::{self, DETAILS, OLDER_CALL, ORDER, SPELLINGS, read},
    tags,
};
use crate::wire::{
    content::{lines, same_call},
    json::{Json, knows, write as write_json},
    lenient::{kind, lenient},
};

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    /// `null` if there are only calls; absent if the provider's own message lacks it there.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Option<Said<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallJson<'a>>,
    #[serde(flatten)]
    rest: Sent,
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

/// Fields of an edited message that its content and its calls replace.
const OF_OTHERS: [&str; 5] = ["role", "content", "refusal", "tool_calls", OLDER_CALL];

/// Fields of a provider's message, as received.
type Sent = BTreeMap<String, Box<RawValue>>;

/// Writes `message`:
///
/// * unchanged, if it is this provider's and unedited;
/// * if it was edited, with the fields of its blocks, and the provider's own for the others;
/// * if it is another provider's or nobody's, from its blocks, without the reasoning, which only
///   its author accepts.
///
/// With `needs_reasoning`, a message with calls always has `reasoning_content`.
pub(super) fn write(manner: &MessageStyle, message: &AssistantMessage, needs_reasoning: bool, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(&manner.origin, raw));
    let needs_reasoning = needs_reasoning && message.has_calls();
    match own {
        // Audio is sent back by id.
        Some(raw)
            if manner.profile.verbatim
                && !message.is_edited()
                && !message.blocks().iter().any(is_speech)
                && (!needs_reasoning || raw.json().contains(REASONING)) =>
        {
            out.extend_from_slice(raw.json().as_bytes());
        }
        _ => Projection { manner, message, own, needs_reasoning }.write(out),
    }
}

/// Field with the reasoning that some servers require.
const REASONING: &str = "reasoning_content";

struct Projection<'a> {
    manner: &'a MessageStyle,
    message: &'a AssistantMessage,
    own: Option<&'a Raw>,
    needs_reasoning: bool,
}

impl<'a> Projection<'a> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut sent: Option<Sent> = self.own.and_then(|own| serde_json::from_str(own.json()).ok());
        sent.iter_mut().for_each(|sent| sent.retain(|_, json| json.get() != "null"));
        let content = self.content(sent.as_ref());
        // A provider that omits the field beside calls receives the message without it.
        let has_content = sent.as_ref().is_none_or(|sent| sent.contains_key("content"));
        let is_said = content.is_some() || has_content;
        let tool_calls = self.message.calls().map(|call| self.call(call)).collect();
        let mut rest = sent.map(|sent| self.rest(sent)).unwrap_or_default();
        if self.needs_reasoning {
            // The reasoning of another model is not sent to this server; a placeholder replaces it.
            let stand_in = || RawValue::from_string("\".\"".into()).unwrap_or_default();
            rest.entry(REASONING.into()).or_insert_with(stand_in);
        }
        // Text that exists only as audio is sent back by its id.
        let is_spoken = rest.contains_key("audio") && !has_content;
        let content = (is_said && !is_spoken).then_some(content);
        write_json(&Turn { role: "assistant", content, tool_calls, rest }, out);
    }

    /// Returns `null` if there are only calls: the API rejects an empty text there, and a missing
    /// content elsewhere.
    fn content(&self, sent: Option<&Sent>) -> Option<Said<'a>> {
        let sends = |name: &str| sent.and_then(|sent| sent.get(name));
        let needs_parts = |block: &Block| match block {
            Block::Text(text) => !is_plain(self.manner, text),
            Block::Other(raw) => self.own_part(Some(raw)).is_some(),
            _ => false,
        };
        let blocks = self.message.blocks();
        if sends("content").is_some_and(|json| json.get().starts_with('[')) || blocks.iter().any(needs_parts) {
            return Some(Said::Parts(blocks.iter().filter_map(|block| self.part(block)).collect()));
        }
        if let Some(own) = self.tagged(sent) {
            return Some(Said::Text(own.into()));
        }
        let all = lines(blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            // The API accepts no images from the model: a placeholder is sent.
            Block::Image(_) if sends("images").is_none() => Some("[image]"),
            Block::Document(media) if !media.is_audio() => Some("[document]"),
            _ => None,
        }));
        (!all.is_empty() || !self.message.has_calls()).then_some(Said::Text(all))
    }

    /// Returns the provider's own content if it contains thinking between tags, and the blocks still
    /// have the same thinking and text.
    fn tagged(&self, sent: Option<&Sent>) -> Option<String> {
        if !self.manner.profile.thinking_tags {
            return None;
        }
        let own: String = serde_json::from_str(sent?.get("content")?.get()).ok()?;
        let mut was = vec![Block::text(own.as_str())];
        tags::split(&mut was);
        let is_said = |block: &&Block| matches!(block, Block::Text(_) | Block::Reasoning(_));
        let is_tagged = was.iter().any(|block| matches!(block, Block::Reasoning(_)));
        let words = |blocks: &[Block]| -> Vec<(bool, String)> {
            let said = blocks.iter().filter(is_said);
            said.map(|block| match block {
                Block::Reasoning(reasoning) => (true, reasoning.text.clone()),
                Block::Text(text) => (false, text.text.clone()),
                _ => Default::default(),
            })
            .collect()
        };
        (is_tagged && words(&was) == words(self.message.blocks())).then_some(own)
    }

    fn part(&self, block: &'a Block) -> Option<Json<'a>> {
        match block {
            Block::Text(text) => Some(text_json(self.manner, text)),
            Block::Reasoning(reasoning) => self.thinking(reasoning).map(Json::Own),
            Block::Image(media) | Block::Document(media) => own_media(self.manner, media).map(Json::Own),
            Block::Other(raw) => self.own_part(Some(raw)).map(Json::Own),
            _ => None,
        }
    }

    /// Returns the provider's own JSON, if it is a content part.
    fn own_part<'b>(&self, raw: Option<&'b Raw>) -> Option<&'b RawValue> {
        self.manner.own(raw).filter(|json| !kind(json).is_empty())
    }

    /// Returns reasoning that is a content part, if it was not edited: its provider accepts only
    /// its own.
    fn thinking(&self, reasoning: &'a Reasoning) -> Option<&'a RawValue> {
        let own = self.own_part(reasoning.raw.as_ref())?;
        matches!(part(own, &self.manner.origin), Block::Reasoning(was) if was.text == reasoning.text).then_some(own)
    }

    /// Returns the provider's fields beside the content and the calls, updated from the blocks. A
    /// provider that rejects its own fields still receives those of reasoning, images and audio.
    fn rest(&self, mut sent: Sent) -> Sent {
        let blocks = self.message.blocks();
        let thoughts = || blocks.iter().filter_map(|block| self.beside_content(block));
        let text: String = thoughts().map(|reasoning| reasoning.text.as_str()).collect();
        // These details repeat and sign the reasoning.
        let details = thoughts().find_map(|reasoning| {
            self.manner.own(reasoning.raw.as_ref()).filter(|json| json.get().starts_with('[') && self.thought() == text)
        });
        let speech = sent.get("audio").map(|json| lenient::<Value>(json)["id"].take()).filter(Value::is_string);
        let images = blocks.iter().filter_map(|block| match block {
            Block::Image(media) => own_media(self.manner, media),
            _ => None,
        });
        let said = Some(&text).filter(|text| !text.is_empty()).and_then(|text| to_raw_value(text).ok());
        let mut now = Sent::new();
        let mut say = |name: &str, json: Option<Box<RawValue>>| {
            now.extend(sent.remove(name).and(json).map(|json| (name.to_owned(), json)));
        };
        SPELLINGS.into_iter().for_each(|name| say(name, said.clone()));
        say(DETAILS, details.map(ToOwned::to_owned));
        say("audio", speech.and_then(|id| to_raw_value(&json!({"id": id})).ok()));
        say("images", to_raw_value(&images.collect::<Vec<_>>()).ok());
        sent.retain(|name, _| self.manner.profile.verbatim && !OF_OTHERS.contains(&name.as_str()));
        sent.append(&mut now);
        sent
    }

    /// Returns reasoning that is in a separate field, not among the content parts.
    fn beside_content<'b>(&self, block: &'b Block) -> Option<&'b Reasoning> {
        let Block::Reasoning(reasoning) = block else { return None };
        Some(reasoning).filter(|reasoning| self.own_part(reasoning.raw.as_ref()).is_none())
    }

    /// Returns the reasoning as the provider sent it.
    fn thought(&self) -> String {
        let was = self.own.and_then(|own| read(own.raw_value(), &self.manner.origin, ORDER).ok()).unwrap_or_default();
        was.iter().filter_map(|block| Some(self.beside_content(block)?.text.as_str())).collect()
    }

    fn call(&self, call: &'a ToolCall) -> CallJson<'a> {
        let still_says = |own: &&RawValue| read::call(own, &self.manner.origin).is_ok_and(|was| same_call(&was, call));
        if let Some(own) = self.manner.own(call.raw.as_ref()).filter(still_says) {
            return CallJson::Raw(own);
        }
        // Some models omit empty arguments, which other servers then reject.
        let arguments = if call.arguments.is_empty() && self.own.is_none() { "{}" } else { &call.arguments };
        CallJson::Call { id: &call.id, r#type: "function", function: FunctionJson { name: &call.name, arguments } }
    }
}

/// Returns true for the audio of a spoken answer, whose transcript is a text beside it.
fn is_speech(block: &Block) -> bool {
    matches!(block, Block::Document(media) if media.is_audio())
}
