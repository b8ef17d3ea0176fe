//! From the items of an answer to blocks.

use agent_core::{
    Block, Media, Text, ToolCall,
    message::{Origin, Reasoning},
};
use serde_json::value::RawValue;

use super::server_tools::{computer_call, server_call};
use crate::wire::{
    annotations::citations,
    content::push_arguments,
    json::raw,
    lenient::{Content, Str, lenient, words},
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
        input: &'a RawValue = "input",
    }
}

open_struct! {
    ImageSaid { result: Str<'a> = "result", format: Str<'a> = "output_format", }
}

/// The items of a list; none if it is no list.
pub(super) fn items(output: &str) -> Vec<&RawValue> {
    serde_json::from_str(output).unwrap_or_default()
}

/// The type of an item or of a part; empty if it has none.
pub(super) fn kind(json: &RawValue) -> String {
    lenient::<Typed<'_>>(json).kind.unwrap_or_default().0.into_owned()
}

/// The blocks of an item. Whatever is not understood becomes one that keeps the item.
pub(super) fn read(json: &RawValue, origin: &Origin) -> Vec<Block> {
    let Typed { kind, role, .. } = lenient(json);
    let kind = kind.unwrap_or_default();
    let blocks = match (&*kind, role.as_deref().unwrap_or_default()) {
        ("message" | "", "assistant") | ("message", "") => message(json, origin),
        ("reasoning", _) => reasoning(json, origin).map(|block| vec![block]),
        ("function_call" | "custom_tool_call", _) => call(json, origin).map(|call| vec![Block::ToolCall(call)]),
        ("image_generation_call", _) => image(json, origin).map(|block| vec![block]),
        ("computer_call", _) => computer_call(json, origin).map(|block| vec![block]),
        (kind, _) => server_call(kind, json, origin).map(|block| vec![block]),
    };
    blocks.unwrap_or_else(|| vec![Block::Other(raw(json, origin))])
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
    let said: PartSaid<'_> = lenient(json);
    match (said.kind.as_deref(), said.text) {
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
            Content::Parts(parts) => parts.into_iter().for_each(|part| {
                let said: PartSaid<'_> = lenient(part);
                add_paragraph(&mut reasoning.text, said.text.as_deref().unwrap_or_default());
            }),
        }
    }
    reasoning.encrypted = words(said.encrypted);
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
    said.input.or(said.arguments).map_or(Ok(()), |json| push_arguments(json, &mut arguments)).ok()?;
    Some(ToolCall {
        id: said.call_id.as_deref().unwrap_or_default().into(),
        name: said.name.as_deref().unwrap_or_default().into(),
        arguments,
        raw: says_more.then(|| raw(json, origin)),
    })
}

fn image(json: &RawValue, origin: &Origin) -> Option<Block> {
    let said: ImageSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let result = said.result.filter(|result| !result.is_empty())?;
    let format = said.format.as_deref().unwrap_or("png");
    Some(Block::Image(Media::base64(result.0, format!("image/{format}")).with_raw(raw(json, origin))))
}
