//! Encoding of content.

use std::borrow::Cow;

use agent_core::{
    Part, Text,
    message::{Cache, Origin},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    media::{MediaJson, media_json},
    read,
};
use crate::wire::{content::Input, json::own};

/// One block of a content.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum BlockJson<'a> {
    Text(Cow<'a, str>),
    Image(MediaJson<'a>),
    Document(MediaJson<'a>),
    Video(MediaJson<'a>),
    Audio(MediaJson<'a>),
    ReasoningContent(Thoughts<'a>),
    ToolUse(CallJson<'a>),
    ToolResult(ResultJson<'a>),
    CachePoint(CachePoint),
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Thoughts<'a> {
    ReasoningText {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    RedactedContent(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallJson<'a> {
    pub(super) tool_use_id: &'a str,
    pub(super) name: &'a str,
    pub(super) input: Input<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultJson<'a> {
    pub(super) tool_use_id: &'a str,
    pub(super) content: Vec<BlockJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
}

/// Marks the end of a prefix to cache.
#[derive(Serialize)]
pub(super) struct CachePoint {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl From<Cache> for CachePoint {
    fn from(cache: Cache) -> Self {
        Self { r#type: "default", ttl: (cache == Cache::Long).then_some("1h") }
    }
}

/// Encodes the parts, each followed by its cache point. Empty parts, and other providers' content
/// that means nothing here, are left out. `place` makes the generated names of documents unique.
pub(super) fn parts_json<'a>(origin: &Origin, place: usize, parts: &'a [Part]) -> Vec<BlockJson<'a>> {
    let mut blocks = Vec::new();
    for (nth, part) in parts.iter().enumerate() {
        let (block, cache) = match part {
            Part::Text(text) => (text_json(origin, text), text.cache),
            Part::Image(media) => (Some(media_json(origin, media, "image/png", (place, nth))), media.cache),
            Part::Document(media) => (Some(media_json(origin, media, "application/pdf", (place, nth))), media.cache),
            Part::Other(raw) => (own(origin, Some(raw)).map(BlockJson::Raw), None),
            _ => (None, None),
        };
        let is_there = block.is_some();
        blocks.extend(block);
        blocks.extend(cache.filter(|_| is_there).map(|cache| BlockJson::CachePoint(cache.into())));
    }
    blocks
}

/// Encodes a text, with the provider's own JSON if it still matches. The API rejects blank texts.
pub(super) fn text_json<'a>(origin: &Origin, text: &'a Text) -> Option<BlockJson<'a>> {
    if let Some(raw) = own(origin, text.raw.as_ref())
        && read::text_of(raw, origin)
            .is_some_and(|was| (was.text, was.citations) == (text.text.clone(), text.citations.clone()))
    {
        return Some(BlockJson::Raw(raw));
    }
    (!text.text.trim().is_empty()).then(|| BlockJson::Text(text.text.as_str().into()))
}

/// Decodes a block that is only a cache marker.
#[cfg(feature = "requests")]
pub(super) fn mark_of(json: &RawValue) -> Option<Cache> {
    let json: serde_json::Value = serde_json::from_str(json.get()).ok()?;
    let is = |cache: Cache| serde_json::to_value(BlockJson::CachePoint(cache.into())).is_ok_and(|mark| mark == json);
    [Cache::Short, Cache::Long].into_iter().find(|cache| is(*cache))
}
