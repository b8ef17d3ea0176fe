//! Decoding of one assistant message into blocks.

use agent_core::{
    AssistantMessage, Block, FinishReason, Media, ModelResponse, ToolCall,
    message::{Origin, Raw, Reasoning},
};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD},
};
use serde_json::{Value, json, value::RawValue};

use super::parts::{part, plain};
use crate::wire::{
    annotations::citations,
    content::push_arguments,
    ended::only_refuses,
    json::raw,
    lenient::{self, Content, Count, Str, lenient, owned, text},
    open_struct::open_struct,
};

open_struct! {
    /// A message's known fields. Unknown ones stay in the raw JSON that is kept alongside the
    /// blocks.
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
        tool_calls: Vec<&'a RawValue> = "tool_calls",
    }
}

open_struct! {
    /// One call, or a piece of one. It may be of another kind than a function: some servers then
    /// send both kinds, one of them empty.
    CallSaid {
        index: Count = "index",
        id: Str<'a> = "id",
        kind: Str<'a> = "type",
        function: Called<'a> = "function",
    }
}

open_struct! {
    Called { name: Str<'a> = "name", arguments: &'a RawValue = "arguments" | "input", }
}

/// Fields of a message that become blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::wire) enum Field {
    Reasoning,
    Content,
    Refusal,
    Images,
    Calls,
}

/// Order of the blocks of a non-streamed message: reasoning, content, calls.
pub(in crate::wire) const ORDER: [Field; 5] =
    [Field::Reasoning, Field::Content, Field::Refusal, Field::Images, Field::Calls];

/// Names of the field with a model's reasoning. Some servers send two of them.
pub(super) const SPELLINGS: [&str; 3] = ["reasoning_content", "reasoning", "tool_plan"];

/// Field in which some servers repeat the reasoning, with its signature.
pub(super) const DETAILS: &str = "reasoning_details";

/// Decodes the message `json`, whose fields were streamed in this order.
pub(in crate::wire) fn read(json: &RawValue, origin: &Origin, order: [Field; 5]) -> serde_json::Result<Vec<Block>> {
    let mut said: Said<'_> = serde_json::from_str(json.get())?;
    let mut blocks = Vec::new();
    for field in order {
        match field {
            Field::Reasoning => blocks.extend(reasoning(&said, origin)),
            Field::Content => content(&mut said, origin, &mut blocks),
            Field::Refusal => blocks.extend(owned(said.refusal.take()).map(|said| refusal(&said, origin))),
            Field::Images => {
                let images: Vec<&RawValue> = said.images.map(lenient).unwrap_or_default();
                images.into_iter().for_each(|image| push_part(image, origin, &mut blocks));
            }
            Field::Calls => {
                let calls = said.tool_calls.take().unwrap_or_default();
                blocks.reserve_exact(calls.len()); // they are kept as long as the run
                for json in calls {
                    blocks.push(Block::ToolCall(call(json, origin)?));
                }
            }
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
        // All content is unknown.
        blocks.push(Block::Other(raw(json, origin)));
    }
    Ok(blocks)
}

/// Decodes the reasoning of a message: the text of the first field that has it, and its signature.
fn reasoning(said: &Said<'_>, origin: &Origin) -> Option<Block> {
    let fields = [said.reasoning_content, said.reasoning, said.tool_plan, said.reasoning_details];
    let texts = fields.into_iter().flatten().map(|json| plain(&lenient(json)));
    let details: Vec<Value> = lenient::part(said.reasoning_details);
    let text = |detail: &Value, name: &str| detail[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let reasoning = Reasoning {
        text: texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
        signature: details.iter().rev().find_map(|detail| text(detail, "signature")),
        encrypted: details.iter().find_map(|detail| text(detail, "data")),
        raw: said.reasoning_details.filter(|_| !details.is_empty()).map(|json| raw(json, origin)),
    };
    (!reasoning.text.is_empty() || reasoning.raw.is_some()).then_some(Block::Reasoning(reasoning))
}

fn content(said: &mut Said<'_>, origin: &Origin, blocks: &mut Vec<Block>) {
    match said.content.take() {
        Some(Content::Parts(list)) => list.into_iter().for_each(|json| push_part(json, origin, blocks)),
        Some(Content::Text(text)) if !text.is_empty() => blocks.push(Block::text(text)),
        // The text of a spoken answer is its transcript.
        _ => {
            let audio: Value = said.audio.map(lenient).unwrap_or_default();
            blocks.extend(audio["transcript"].as_str().filter(|words| !words.is_empty()).map(Block::text));
        }
    }
}

/// Adds the block of a part, unless it is empty.
fn push_part(json: &RawValue, origin: &Origin, blocks: &mut Vec<Block>) {
    let block = part(json, origin);
    if !matches!(&block, Block::Text(text) if text.is_empty()) {
        blocks.push(block);
    }
}

fn refusal(said: &str, origin: &Origin) -> Block {
    Block::Other(Raw::from_value(origin.clone(), &json!({"type": "refusal", "refusal": said})))
}

/// Decodes the audio of a spoken answer. Its format is not stated and is detected from its first
/// bytes.
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

/// Decodes base64 that was sent in pieces, each of which may have its own padding.
fn sound(data: &str) -> Vec<u8> {
    let pieces = data.split('=').filter(|piece| !piece.is_empty());
    pieces.flat_map(|piece| BASE64_STANDARD_NO_PAD.decode(piece).unwrap_or_default()).collect()
}

/// Decodes a call, which keeps its JSON if a [`ToolCall`] cannot represent all of it.
pub(super) fn call(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolCall> {
    let CallSaid { id, function, rest, .. } = serde_json::from_str(json.get())?;
    let custom = rest.iter().find(|(name, _)| &**name == "custom").map(|(_, json)| lenient::<Called<'_>>(json));
    let says_more = !rest.is_empty() || function.as_ref().is_some_and(|function| !function.rest.is_empty());
    let called = custom.filter(|custom| !text(&custom.name).is_empty()).or(function).unwrap_or_default();
    let mut arguments = String::new();
    called.arguments.map_or(Ok(()), |json| push_arguments(json, &mut arguments))?;
    let own = says_more.then(|| raw(json, origin));
    Ok(ToolCall { id: text(&id).into(), name: text(&called.name).into(), arguments, raw: own })
}

/// Adds the call of a message in the API's older format, which has at most one call, without an id.
pub(super) fn add_older_call(json: &RawValue, blocks: &mut Vec<Block>) {
    if !json.get().contains(OLDER_CALL) || blocks.iter().any(|block| matches!(block, Block::ToolCall(_))) {
        return;
    }
    let said: Said<'_> = lenient(json);
    let Some((_, older)) = said.rest.iter().find(|(name, _)| &**name == OLDER_CALL) else { return };
    let called: Called<'_> = lenient(older);
    let mut arguments = String::new();
    let is_read = called.arguments.map_or(Ok(()), |json| push_arguments(json, &mut arguments)).is_ok();
    if let Some(name) = owned(called.name).filter(|_| is_read) {
        blocks.retain(|block| !matches!(block, Block::Other(raw) if raw.json() == json.get()));
        blocks.push(Block::tool_call("", name, arguments));
    }
}

/// Field with the call in the API's older format.
pub(super) const OLDER_CALL: &str = "function_call";

/// Builds the response of a message with the provider's finish reason `finish`.
pub(in crate::wire) fn answered(message: AssistantMessage, finish: &str) -> ModelResponse {
    let finish = match finish {
        "" | "stop" | "eos" | "tool_calls" | "function_call" if message.has_calls() => FinishReason::ToolCalls,
        "" | "stop" | "tool_calls" | "function_call" if only_refuses(&message) => FinishReason::ContentFilter,
        "" | "stop" | "eos" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    };
    ModelResponse::new(message).with_finish(finish)
}
