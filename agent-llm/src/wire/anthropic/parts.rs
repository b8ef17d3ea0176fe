//! Content, as the API writes it.

use std::borrow::Cow;

use agent_core::{
    Part, Text,
    message::{Cache, Origin},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    media::{Source, media_json},
    read,
};
pub(super) use crate::wire::content::EMPTY;
use crate::wire::{cache_control::CacheControl, content::Input, json::own};

/// One block of a content.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockJson<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Raw(&'a RawValue),
    /// The provider's own JSON with another cache mark.
    #[serde(untagged)]
    Marked(Value),
}

/// The content of a tool's result.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<BlockJson<'a>>),
}

/// A text and nothing else.
pub(super) fn plain<'a>(text: impl Into<Cow<'a, str>>) -> BlockJson<'a> {
    BlockJson::Text { text: text.into(), cache_control: None }
}

/// The part in this API's form; none if it says nothing, or is another provider's and means nothing here.
pub(super) fn part_json<'a>(origin: &Origin, part: &'a Part) -> Option<BlockJson<'a>> {
    match part {
        Part::Text(text) => text_json(origin, text),
        Part::Image(media) => Some(media_json(origin, media, false)),
        Part::Document(media) => Some(media_json(origin, media, true)),
        Part::Other(raw) => own(origin, Some(raw)).map(BlockJson::Raw),
        _ => None,
    }
}

/// The text, in the provider's own JSON if that still says the same. The API takes no text that is blank.
pub(super) fn text_json<'a>(origin: &Origin, text: &'a Text) -> Option<BlockJson<'a>> {
    if let Some(raw) = own(origin, text.raw.as_ref())
        && let Part::Text(was) = read::part(raw, origin)
        && (&was.text, &was.citations) == (&text.text, &text.citations)
    {
        return Some(with_mark(raw, was.cache, text.cache));
    }
    let cache_control = text.cache.map(CacheControl::from);
    (!text.text.trim().is_empty()).then(|| BlockJson::Text { text: Cow::Borrowed(&text.text), cache_control })
}

/// The provider's own JSON, with the cache mark that is wanted now.
pub(super) fn with_mark<'a>(raw: &'a RawValue, was: Option<Cache>, wanted: Option<Cache>) -> BlockJson<'a> {
    if was == wanted { BlockJson::Raw(raw) } else { BlockJson::Marked(marked(raw, wanted)) }
}

/// The JSON of a block or a tool with another cache mark.
pub(super) fn marked(raw: &RawValue, cache: Option<Cache>) -> Value {
    let mut fields: Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
    fields.remove("cache_control");
    if let Some(mark) = cache {
        let mark = serde_json::to_value(CacheControl::from(mark)).unwrap_or_default();
        fields.insert("cache_control".into(), mark);
    }
    Value::Object(fields)
}
