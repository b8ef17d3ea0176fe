//! Decoding of an answer's items into blocks.

use agent_core::{
    Block, Media, Text, ToolCall,
    message::{Origin, Reasoning},
};
use serde_json::value::RawValue;

use super::tools::{computer_call, server_call};
use crate::wire::{
    annotations::citations,
    content::push_arguments,
    json::raw,
    lenient::{Content, Str, lenient, owned},
    open_struct::open_struct,
};

open_struct! {
    /// An item's known fields. Unknown ones are kept raw.
    ItemSaid {
        kind: Str<'a> = "type",
        role: Str<'a> = "role",
        _id: &'a RawValue = "id",
        _status: &'a RawValue = "status",
        content: Content<'a> = "content",
        summary: Content<'a> = "summary",
        sealed: Str<'a> = "encrypted_content",
        call_id: Str<'a> = "call_id",
        name: Str<'a> = "name",
        arguments: &'a RawValue = "arguments",
        input: &'a RawValue = "input",
        image: &'a RawValue = "result",
        format: Str<'a> = "output_format",
    }
}

open_struct! {
    /// A part of a message, or of reasoning.
    PartSaid {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        annotations: &'a RawValue = "annotations",
        logprobs: &'a RawValue = "logprobs",
    }
}

/// Returns the items of a list; empty if the JSON is not a list.
pub(super) fn items(output: &str) -> Vec<&RawValue> {
    serde_json::from_str(output).unwrap_or_default()
}

/// Decodes the blocks of an item. An unknown item becomes one raw block.
pub(super) fn read(json: &RawValue, origin: &Origin) -> Vec<Block> {
    let said: ItemSaid<'_> = lenient(json);
    let block = match (said.kind.as_deref().unwrap_or_default(), said.role.as_deref().unwrap_or_default()) {
        ("message" | "", "assistant") | ("message", "") if said.content.is_some() => return message(said, origin),
        ("reasoning", _) => Some(reasoning(said, json, origin)),
        ("function_call" | "custom_tool_call", _) => call(&said, json, origin),
        ("image_generation_call", _) => image(&said, json, origin),
        ("computer_call", _) => computer_call(json, origin),
        (kind, _) => server_call(kind, json, origin),
    };
    vec![block.unwrap_or_else(|| Block::Other(raw(json, origin)))]
}

fn message(said: ItemSaid<'_>, origin: &Origin) -> Vec<Block> {
    let blocks: Vec<_> = match said.content {
        Some(Content::Text(text)) => vec![Block::text(text)],
        Some(Content::Parts(parts)) => parts.into_iter().map(|json| part(json, origin)).collect(),
        None => Vec::new(),
    };
    blocks.into_iter().filter(|block| !matches!(block, Block::Text(text) if text.is_empty())).collect()
}

fn part(json: &RawValue, origin: &Origin) -> Block {
    let says_something = |json: &&RawValue| !matches!(json.get(), "[]" | "null");
    let said: PartSaid<'_> = lenient(json);
    match (said.kind.as_deref(), said.text) {
        (Some("output_text" | "text"), Some(words)) => {
            let annotations = said.annotations.filter(says_something);
            let says_more = annotations.is_some() || said.logprobs.is_some_and(|said| says_something(&said));
            let mut text = Text::new(words.0);
            text.citations = annotations.map(|said| citations(said, &text.text)).unwrap_or_default();
            Block::Text(text.with_raw((says_more || !said.rest.is_empty()).then(|| raw(json, origin))))
        }
        _ => Block::Other(raw(json, origin)),
    }
}

/// Separator between parts of a model's reasoning.
pub(super) const PARAGRAPH: &str = "\n\n";

/// Decodes reasoning. The readable text is the summary, and the reasoning itself if the server
/// sends it.
fn reasoning(said: ItemSaid<'_>, json: &RawValue, origin: &Origin) -> Block {
    let mut paragraphs = Vec::new();
    for content in [said.summary, said.content].into_iter().flatten() {
        match content {
            Content::Text(text) => paragraphs.push(text.into_owned()),
            Content::Parts(parts) => {
                paragraphs.extend(parts.into_iter().filter_map(|part| owned(lenient::<PartSaid<'_>>(part).text)));
            }
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    let (text, encrypted, raw) = (paragraphs.join(PARAGRAPH), owned(said.sealed), Some(raw(json, origin)));
    Block::Reasoning(Reasoning { text, encrypted, raw, ..Reasoning::default() })
}

/// Decodes a call; it keeps its JSON if that contains more than tool and arguments.
fn call(said: &ItemSaid<'_>, json: &RawValue, origin: &Origin) -> Option<Block> {
    let says_more = !said.rest.is_empty() || said.input.is_some();
    let mut arguments = String::new();
    said.input.or(said.arguments).map_or(Ok(()), |json| push_arguments(json, &mut arguments)).ok()?;
    Some(Block::ToolCall(ToolCall {
        id: said.call_id.as_deref().unwrap_or_default().into(),
        name: said.name.as_deref().unwrap_or_default().into(),
        arguments,
        raw: says_more.then(|| raw(json, origin)),
    }))
}

fn image(said: &ItemSaid<'_>, json: &RawValue, origin: &Origin) -> Option<Block> {
    let data = owned(said.image.and_then(lenient))?;
    let format = said.format.as_deref().unwrap_or("png");
    Some(Block::Image(Media::base64(data, format!("image/{format}")).with_raw(raw(json, origin))))
}
