//! Decoding of the API's blocks.

use std::collections::BTreeMap;

use agent_core::{
    Block, Media, Part, Text, ToolCall,
    message::{Cache, Citation, MediaSource, Origin, Reasoning, SourcePlace},
};
use serde_json::{Map, Value, value::RawValue};

use super::server_tools::server_call;
use crate::wire::{
    json::raw,
    lenient::{Str, kind, owned, part as lenient},
    open_struct::open_struct,
};

open_struct! {
    TextSaid {
        _kind: &'a RawValue = "type",
        text: Str<'a> = "text",
        citations: &'a RawValue = "citations",
        cache_control: &'a RawValue = "cache_control",
    }
}

open_struct! {
    ThinkingSaid { _kind: &'a RawValue = "type", thinking: Str<'a> = "thinking", signature: &'a RawValue = "signature", }
}

open_struct! {
    RedactedSaid { _kind: &'a RawValue = "type", data: Str<'a> = "data", }
}

open_struct! {
    ToolUseSaid {
        _kind: &'a RawValue = "type",
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        input: &'a RawValue = "input",
    }
}

open_struct! {
    MediaSaid {
        _kind: &'a RawValue = "type",
        source: SourceSaid<'a> = "source",
        title: Str<'a> = "title",
        cache_control: &'a RawValue = "cache_control",
    }
}

open_struct! {
    SourceSaid {
        kind: Str<'a> = "type",
        media_type: Str<'a> = "media_type",
        data: Str<'a> = "data",
        url: Str<'a> = "url",
        file_id: Str<'a> = "file_id",
    }
}

/// Decodes a block of the assistant. Unknown blocks are kept raw.
pub(super) fn block(json: &RawValue, origin: &Origin) -> Block {
    let kind = kind(json);
    let block = match &*kind {
        "text" => text(json, origin).map(Block::Text),
        "thinking" => thinking(json, origin).map(Block::Reasoning),
        "redacted_thinking" => redacted(json, origin).map(Block::Reasoning),
        "tool_use" => tool_use(json, origin).map(Block::ToolCall),
        _ => None,
    };
    block.or_else(|| server_call(&kind, json, origin)).unwrap_or_else(|| Block::Other(raw(json, origin)))
}

/// Decodes a part of a user message or of a tool result. Unknown parts are kept raw.
pub(super) fn part(json: &RawValue, origin: &Origin) -> Part {
    let part = match &*kind(json) {
        "text" => text(json, origin).map(Part::Text),
        "image" => media(json, origin).map(Part::Image),
        "document" => media(json, origin).map(Part::Document),
        _ => None,
    };
    part.unwrap_or_else(|| Part::Other(raw(json, origin)))
}

/// Decodes a text, which keeps its JSON if that contains more.
fn text(json: &RawValue, origin: &Origin) -> Option<Text> {
    let said: TextSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let says_more = said.citations.is_some() || said.cache_control.is_some() || !said.rest.is_empty();
    let mut text = Text::new(said.text?.0).with_raw(says_more.then(|| raw(json, origin)));
    text.citations = said.citations.map(citations).unwrap_or_default();
    text.cache = said.cache_control.and_then(marked);
    Some(text)
}

/// Returns the cache marker of a tool.
pub(super) fn cache(json: &RawValue) -> Option<Cache> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json.get()).ok()?;
    marked(fields.get("cache_control")?)
}

/// Decodes a cache marker; `None` for any other JSON.
fn marked(json: &RawValue) -> Option<Cache> {
    let said: Map<String, Value> = serde_json::from_str(json.get()).ok()?;
    Some(if said.get("ttl").is_some_and(|ttl| ttl == "1h") { Cache::Long } else { Cache::Short })
}

/// Decodes citations; in a request, `citations` is a setting.
fn citations(json: &RawValue) -> Vec<Citation> {
    let said: Vec<Value> = serde_json::from_str(json.get()).unwrap_or_default();
    said.iter().map(citation).collect()
}

fn citation(said: &Value) -> Citation {
    let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let number = |name: &str| said[name].as_u64();
    let mut citation = Citation::default();
    citation.url = text("url").or(text("source").filter(|source| source.contains("://")));
    citation.title = text("title").or(text("document_title"));
    citation.quote = text("cited_text");
    let document = number("document_index").or(number("search_result_index"));
    citation.document = document.and_then(|at| at.try_into().ok());
    citation.file = text("file_id");
    let places = [
        ("start_char_index", "end_char_index", SourcePlace::Characters as fn(u64, u64) -> SourcePlace),
        ("start_page_number", "end_page_number", SourcePlace::Pages),
        ("start_block_index", "end_block_index", SourcePlace::Blocks),
    ];
    citation.place = places.into_iter().find_map(|(from, to, of)| Some(of(number(from)?, number(to)?)));
    citation
}

/// A signature that is not a string is ignored here and kept in the JSON.
fn thinking(json: &RawValue, origin: &Origin) -> Option<Reasoning> {
    let said: ThinkingSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let signature: Option<Str<'_>> = lenient(said.signature);
    let says_more = !said.rest.is_empty() || (said.signature.is_some() && signature.is_none());
    Some(Reasoning {
        raw: says_more.then(|| raw(json, origin)),
        text: said.thinking.unwrap_or_default().0.into_owned(),
        signature: owned(signature),
        encrypted: None,
    })
}

fn redacted(json: &RawValue, origin: &Origin) -> Option<Reasoning> {
    let said: RedactedSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let raw = (!said.rest.is_empty()).then(|| raw(json, origin));
    Some(Reasoning { encrypted: Some(said.data?.0.into_owned()), raw, ..Reasoning::default() })
}

fn tool_use(json: &RawValue, origin: &Origin) -> Option<ToolCall> {
    let said: ToolUseSaid<'_> = serde_json::from_str(json.get()).ok()?;
    Some(ToolCall {
        raw: (!said.rest.is_empty()).then(|| raw(json, origin)),
        id: said.id?.0.into(),
        name: said.name?.0.into(),
        arguments: said.input.map_or("{}", RawValue::get).to_owned(),
    })
}

/// Decodes media, which keep their JSON if it contains more than a [`Media`].
fn media(json: &RawValue, origin: &Origin) -> Option<Media> {
    let said: MediaSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let source = said.source?;
    let says_more = !said.rest.is_empty() || !source.rest.is_empty() || said.cache_control.is_some();
    let place = match &*source.kind?.0 {
        "base64" => MediaSource::Base64(source.data?.0.into_owned()),
        "url" => MediaSource::Url(source.url?.0.into_owned()),
        "file" => MediaSource::File(source.file_id?.0.into_owned()),
        _ => return None,
    };
    let mut media = Media::new(place).with_raw(says_more.then(|| raw(json, origin)));
    media.mime = owned(source.media_type);
    media.name = owned(said.title);
    media.cache = said.cache_control.and_then(marked);
    Some(media)
}
