//! From the items of an answer to blocks.

use agent_core::{
    Block, Media, Text, ToolCall,
    message::{Origin, Raw, Reasoning},
};
use serde_json::value::RawValue;

use super::{
    citations::citations,
    server_tools::{computer_call, server_call},
};
use crate::wire::{
    content::push_arguments,
    ids::call_id,
    lenient::{Content, Str},
    open_struct::open_struct,
};

open_struct! {
    Typed { kind: Str<'a> = "type", role: Str<'a> = "role", }
}

open_struct! {
    MessageSaid { content: Content<'a> = "content", }
}

open_struct! {
    /// A part of a message.
    PartSaid {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        annotations: &'a RawValue = "annotations",
        logprobs: &'a RawValue = "logprobs",
    }
}

open_struct! {
    ReasoningSaid {
        summary: Content<'a> = "summary",
        content: Content<'a> = "content",
        encrypted: Str<'a> = "encrypted_content",
    }
}

open_struct! {
    CallSaid {
        _kind: Str<'a> = "type",
        _id: Str<'a> = "id",
        _status: Str<'a> = "status",
        call_id: Str<'a> = "call_id",
        name: Str<'a> = "name",
        arguments: &'a RawValue = "arguments",
        input: Str<'a> = "input",
    }
}

open_struct! {
    ImageSaid { result: Str<'a> = "result", format: Str<'a> = "output_format", }
}

/// The items of a list; none if it is no list.
pub(super) fn items(output: &str) -> Vec<&RawValue> {
    serde_json::from_str(output).unwrap_or_default()
}

/// The type of an item, and the role of whoever says it.
pub(super) fn kind(json: &RawValue) -> (String, String) {
    let typed: Typed<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    let text = |said: Option<Str<'_>>| said.map(|said| said.0.into_owned()).unwrap_or_default();
    (text(typed.kind), text(typed.role))
}

/// The blocks of an item. Whatever is not understood becomes one that keeps the item.
pub(super) fn read(json: &RawValue, origin: &Origin) -> Vec<Block> {
    let (kind, role) = kind(json);
    let blocks = match (kind.as_str(), role.as_str()) {
        ("message" | "", "assistant") | ("message", "") => message(json, origin),
        ("reasoning", _) => reasoning(json, origin).map(|block| vec![block]),
        ("function_call" | "custom_tool_call", _) => call(json, origin).map(|call| vec![Block::ToolCall(call)]),
        ("image_generation_call", _) => image(json, origin).map(|block| vec![block]),
        (kind, _) => {
            server_call(kind, json, origin).or_else(|| computer_call(kind, json, origin)).map(|block| vec![block])
        }
    };
    blocks.unwrap_or_else(|| vec![Block::Other(raw(json, origin))])
}

/// The block of an item that is one block.
pub(super) fn read_one(json: &RawValue, origin: &Origin) -> Block {
    read(json, origin).pop().unwrap_or_else(|| Block::Other(raw(json, origin)))
}

fn message(json: &RawValue, origin: &Origin) -> Option<Vec<Block>> {
    let said: MessageSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let blocks: Vec<_> = match said.content? {
        Content::Text(text) => vec![Block::text(text)],
        Content::Parts(parts) => parts.into_iter().map(|part| self::part(part, origin)).collect(),
    };
    Some(blocks.into_iter().filter(|block| !matches!(block, Block::Text(text) if text.is_empty())).collect())
}

fn part(json: &RawValue, origin: &Origin) -> Block {
    let says_something = |json: &&RawValue| !matches!(json.get(), "[]" | "null");
    let said: PartSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    match (said.kind.as_ref().map(|kind| &*kind.0), said.text) {
        (Some("output_text" | "text"), Some(words)) => {
            let (annotations, logprobs) =
                (said.annotations.filter(says_something), said.logprobs.filter(says_something));
            let mut text = Text::new(words.0);
            text.citations = annotations.map(|said| citations(said, &text.text)).unwrap_or_default();
            let says_more = annotations.is_some() || logprobs.is_some() || !said.rest.is_empty();
            Block::Text(text.with_raw(says_more.then(|| raw(json, origin))))
        }
        _ => Block::Other(raw(json, origin)),
    }
}

/// The readable part is the summary, and the reasoning itself where a server shows it.
fn reasoning(json: &RawValue, origin: &Origin) -> Option<Block> {
    let said: ReasoningSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let mut reasoning = Reasoning { raw: Some(raw(json, origin)), ..Reasoning::default() };
    for content in [said.summary, said.content].into_iter().flatten() {
        match content {
            Content::Text(text) => add_paragraph(&mut reasoning.text, &text),
            Content::Parts(parts) => {
                for part in parts {
                    let said: PartSaid<'_> = serde_json::from_str(part.get()).unwrap_or_default();
                    add_paragraph(&mut reasoning.text, said.text.as_ref().map_or("", |text| &text.0));
                }
            }
        }
    }
    reasoning.encrypted = said.encrypted.filter(|sealed| !sealed.is_empty()).map(|sealed| sealed.0.into_owned());
    Some(Block::Reasoning(reasoning))
}

/// What stands between two parts of a model's reasoning.
pub(super) const PARAGRAPH: &str = "\n\n";

fn add_paragraph(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str(PARAGRAPH);
    }
    text.push_str(more);
}

/// A call; it keeps its JSON if that says more than which tool is called with what.
fn call(json: &RawValue, origin: &Origin) -> Option<ToolCall> {
    let said: CallSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let says_more = !said.rest.is_empty() || said.input.is_some();
    let mut arguments = String::new();
    match (said.input, said.arguments) {
        (Some(input), _) => arguments.push_str(&input.0),
        (None, Some(json)) => push_arguments(json, &mut arguments).ok()?,
        (None, None) => {}
    }
    Some(ToolCall {
        id: said.call_id.map(|id| id.0.into()).unwrap_or_default(),
        name: said.name.map(|name| name.0.into()).unwrap_or_default(),
        arguments,
        raw: says_more.then(|| raw(json, origin)),
    })
}

fn image(json: &RawValue, origin: &Origin) -> Option<Block> {
    let said: ImageSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let result = said.result.filter(|result| !result.is_empty())?;
    let format = said.format.as_ref().map_or("png", |format| &*format.0);
    Some(Block::Image(Media::base64(result.0, format!("image/{format}")).with_raw(raw(json, origin))))
}

/// Gives ids to calls that have none; `before` is the number of calls before these. True if there were any.
pub(super) fn name_calls(blocks: &mut [Block], response: &str, before: usize) -> bool {
    let calls = blocks.iter_mut().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    });
    let mut named = false;
    for (at, call) in calls.enumerate().filter(|(_, call)| call.id.is_empty()) {
        (call.id, named) = (call_id(response, before + at).into(), true);
    }
    named
}

fn raw(json: &RawValue, origin: &Origin) -> Raw {
    Raw::new(origin.clone(), json.to_owned())
}
