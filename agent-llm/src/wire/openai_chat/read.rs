//! From the JSON of one assistant message to its blocks.

use agent_core::{
    AssistantMessage, Block, FinishReason, Media, ModelResponse, ToolCall,
    message::{Origin, Raw, Reasoning},
};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use serde_json::{Value, json, value::RawValue};

use super::parts::{part, plain};
use crate::wire::{
    annotations::citations,
    content::push_arguments,
    ended::only_refuses,
    json::raw,
    lenient::{Content, Str, lenient, owned},
    open_struct::open_struct,
};

open_struct! {
    /// The message, as far as it is understood. What is not stays in the raw JSON that is kept beside the blocks.
    Said {
        _role: Str<'a> = "role",
        content: Content<'a> = "content",
        reasoning_content: &'a RawValue = "reasoning_content",
        reasoning: &'a RawValue = "reasoning",
        tool_plan: &'a RawValue = "tool_plan",
        reasoning_details: &'a RawValue = "reasoning_details",
        refusal: Str<'a> = "refusal",
        images: &'a RawValue = "images",
        audio: &'a RawValue = "audio",
        annotations: &'a RawValue = "annotations",
        tool_calls: Vec<Call<'a>> = "tool_calls",
    }
}

open_struct! {
    /// One call. What is called may be no function; some servers send both kinds, and leave one empty.
    Call {
        id: Str<'a> = "id",
        _index: &'a RawValue = "index",
        _kind: Str<'a> = "type",
        function: Called<'a> = "function",
        custom: Called<'a> = "custom",
    }
}

open_struct! {
    Called { name: Str<'a> = "name", arguments: &'a RawValue = "arguments" | "input", }
}

open_struct! {
    /// A message, as far as the JSON of its calls is wanted.
    CallsOf { tool_calls: Vec<&'a RawValue> = "tool_calls", }
}

/// The fields of a message that blocks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Field {
    Reasoning,
    Content,
    Refusal,
    Images,
    Calls,
}

/// How a message that came whole is ordered: models think, then speak, then call.
pub(in crate::wire) const ORDER: [Field; 5] =
    [Field::Reasoning, Field::Content, Field::Refusal, Field::Images, Field::Calls];

/// The fields in which servers have a model's reasoning. Some send it in two of them.
pub(super) const SPELLINGS: [&str; 3] = ["reasoning_content", "reasoning", "tool_plan"];

/// Reads the message `json`, whose fields were heard in this order.
pub(in crate::wire) fn read(json: &RawValue, origin: &Origin, order: [Field; 5]) -> serde_json::Result<Vec<Block>> {
    let mut said: Said<'_> = serde_json::from_str(json.get())?;
    let mut blocks = Vec::new();
    for field in order {
        match field {
            Field::Reasoning => blocks.extend(reasoning(&said, origin)?),
            Field::Content => content(&mut said, origin, &mut blocks),
            Field::Refusal => blocks.extend(owned(said.refusal.take()).map(|said| refusal(&said, origin))),
            Field::Images => {
                let images: Vec<&RawValue> = said.images.map(lenient).unwrap_or_default();
                images.into_iter().for_each(|image| push_part(image, origin, &mut blocks));
            }
            Field::Calls => calls(&mut said, json, origin, &mut blocks)?,
        }
    }
    blocks.extend(said.audio.and_then(speech));
    let text = blocks.iter_mut().find_map(|block| if let Block::Text(text) = block { Some(text) } else { None });
    if let (Some(text), Some(json)) = (text, said.annotations) {
        text.citations = citations(json, &text.text);
    }
    let unknown = said.rest.iter().map(|(_, json)| *json).chain(said.audio).chain(said.annotations);
    let says_something = |json: &RawValue| json.get().starts_with(['"', '[', '{']) && json.get().len() > 2;
    if blocks.is_empty() && unknown.into_iter().any(says_something) {
        // Nothing in it is understood, but something was said.
        blocks.push(Block::Other(raw(json, origin)));
    }
    Ok(blocks)
}

/// The readable reasoning of a message, the first if it is said twice.
fn reasoning(said: &Said<'_>, origin: &Origin) -> serde_json::Result<Option<Block>> {
    let mut reasoning = Reasoning::default();
    for json in [said.reasoning_content, said.reasoning, said.tool_plan].into_iter().flatten() {
        if reasoning.text.is_empty() {
            reasoning.text = plain(&serde_json::from_str(json.get())?);
        }
    }
    let details: Vec<Value> = said.reasoning_details.map(lenient).unwrap_or_default();
    if !details.is_empty() {
        reasoning.raw = said.reasoning_details.map(|json| raw(json, origin));
    }
    if reasoning.text.is_empty() {
        reasoning.text = text_of(&details);
    }
    let text = |detail: &Value, name: &str| detail[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    reasoning.signature = details.iter().rev().find_map(|detail| text(detail, "signature"));
    reasoning.encrypted = details.iter().find_map(|detail| text(detail, "data"));
    Ok(Some(reasoning).filter(|r| !r.text.is_empty() || r.raw.is_some()).map(Block::Reasoning))
}

/// The readable text of `reasoning_details`; none if there are no details.
pub(super) fn details_text(json: &RawValue) -> Option<String> {
    let details: Vec<Value> = lenient(json);
    (!details.is_empty()).then(|| text_of(&details))
}

fn text_of(details: &[Value]) -> String {
    let texts = details.iter().flat_map(|detail| [&detail["text"], &detail["summary"]]);
    texts.filter_map(Value::as_str).collect()
}

fn content(said: &mut Said<'_>, origin: &Origin, blocks: &mut Vec<Block>) {
    match said.content.take() {
        Some(Content::Parts(list)) => list.into_iter().for_each(|json| push_part(json, origin, blocks)),
        Some(Content::Text(text)) if !text.is_empty() => blocks.push(Block::text(text)),
        // A spoken answer has its words in the transcript.
        _ => {
            let audio: Value = said.audio.map(lenient).unwrap_or_default();
            blocks.extend(audio["transcript"].as_str().filter(|words| !words.is_empty()).map(Block::text));
        }
    }
}

/// Adds the block of a part, unless it says nothing.
fn push_part(json: &RawValue, origin: &Origin, blocks: &mut Vec<Block>) {
    let block = part(json, origin);
    if !matches!(&block, Block::Text(text) if text.is_empty()) {
        blocks.push(block);
    }
}

fn refusal(said: &str, origin: &Origin) -> Block {
    Block::Other(Raw::from_value(origin.clone(), &json!({"type": "refusal", "refusal": said})))
}

/// The sound of a spoken answer. Its form is not said: how it begins shows it.
fn speech(json: &RawValue) -> Option<Block> {
    let sound = sound(lenient::<Value>(json)["data"].as_str()?);
    let mime = match sound.get(..4)? {
        b"RIFF" => "audio/wav",
        b"fLaC" => "audio/flac",
        b"OggS" => "audio/ogg",
        [b'I', b'D', b'3', _] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => "audio/mpeg",
        [0xff, 0xf1 | 0xf9, ..] => "audio/aac",
        _ => "audio/pcm",
    };
    Some(Block::Document(Media::base64(BASE64_STANDARD.encode(sound), mime)))
}

/// The bytes of base64 that came in pieces, each of which may have its own end.
fn sound(data: &str) -> Vec<u8> {
    let pieces = data.split_inclusive('=').filter(|piece| *piece != "=");
    pieces.flat_map(|piece| STANDARD_LENIENT.decode(piece.trim_end_matches('=')).unwrap_or_default()).collect()
}

/// Base64 whose padding may be left out.
const STANDARD_LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The calls, of which few say more than a call: the `message` is searched for their JSON only if one does.
fn calls(said: &mut Said<'_>, message: &RawValue, origin: &Origin, blocks: &mut Vec<Block>) -> serde_json::Result<()> {
    let calls = said.tool_calls.take().unwrap_or_default();
    let own: Vec<&RawValue> = match calls.iter().any(Call::says_more) {
        true => serde_json::from_str::<CallsOf<'_>>(message.get())?.tool_calls.unwrap_or_default(),
        false => Vec::new(),
    };
    blocks.reserve_exact(calls.len()); // they are kept for as long as the run
    for (at, call) in calls.into_iter().enumerate() {
        let own = own.get(at).filter(|_| call.says_more()).map(|json| raw(json, origin));
        blocks.push(Block::ToolCall(call_of(&call, own)?));
    }
    Ok(())
}

impl<'a> Call<'a> {
    fn custom(&self) -> Option<&Called<'a>> {
        self.custom.as_ref().filter(|custom| custom.name.as_ref().is_some_and(|name| !name.is_empty()))
    }

    /// True if a [`ToolCall`] has no room for all of it.
    fn says_more(&self) -> bool {
        let function_says_more = self.function.as_ref().is_some_and(|function| !function.rest.is_empty());
        !self.rest.is_empty() || function_says_more || self.custom().is_some()
    }
}

/// The call, which keeps its `own` JSON.
pub(super) fn call_of(said: &Call<'_>, own: Option<Raw>) -> serde_json::Result<ToolCall> {
    let called = said.custom().or(said.function.as_ref());
    let mut arguments = String::new();
    called.and_then(|called| called.arguments).map_or(Ok(()), |json| push_arguments(json, &mut arguments))?;
    let name = called.and_then(|called| called.name.as_deref()).unwrap_or_default();
    Ok(ToolCall { id: said.id.as_deref().unwrap_or_default().into(), name: name.into(), arguments, raw: own })
}

/// The response of a message, which ended as the provider says with `finish`.
pub(in crate::wire) fn answered(message: AssistantMessage, finish: &str) -> ModelResponse {
    let finish = match finish {
        "" | "stop" | "tool_calls" | "function_call" if message.has_calls() => FinishReason::ToolCalls,
        "" | "stop" | "tool_calls" | "function_call" if only_refuses(&message) => FinishReason::ContentFilter,
        "" | "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    };
    ModelResponse::new(message).with_finish(finish)
}
