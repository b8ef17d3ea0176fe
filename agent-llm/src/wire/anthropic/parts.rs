//! Encoding of content, and supported media.

use std::borrow::Cow;

use agent_core::{
    History, Media, Part, Result, Text,
    message::{Cache, MediaSource, Origin},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::read;
use crate::wire::{
    cache_control::CacheControl,
    content::{Input, check_media, same_media},
    json::own,
};

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
        id: &'a str,
        name: &'a str,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    #[serde(untagged)]
    Raw(&'a RawValue),
    /// The provider's own JSON with a different cache marker.
    #[serde(untagged)]
    Marked(Value),
}

/// Content of a tool result, or of a system prompt.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Raw(&'a RawValue),
    Text(Cow<'a, str>),
    Blocks(Vec<BlockJson<'a>>),
}

impl<'a> Content<'a> {
    /// Returns the content of these blocks; `None` for an empty list. A single text needs no block.
    pub(super) fn of(mut blocks: Vec<BlockJson<'a>>) -> Option<Self> {
        Some(match blocks.pop()? {
            BlockJson::Text { text, cache_control: None } if blocks.is_empty() => Self::Text(text),
            last => {
                blocks.push(last);
                Self::Blocks(blocks)
            }
        })
    }
}

/// Source of media.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Text { media_type: &'static str, data: String },
    Url { url: &'a str },
    File { file_id: &'a str },
}

impl<'a> Source<'a> {
    /// `usual` is the default media type.
    fn of(media: &'a Media, usual: &'a str) -> Self {
        let media_type = media.mime.as_deref().unwrap_or(usual);
        match &media.source {
            // The API accepts base64 only for PDFs and images.
            MediaSource::Base64(data) if media_type.starts_with("text/") => match BASE64_STANDARD.decode(data) {
                Ok(text) => Self::Text { media_type: "text/plain", data: String::from_utf8_lossy(&text).into_owned() },
                Err(_) => Self::Base64 { media_type, data },
            },
            MediaSource::Base64(data) => Self::Base64 { media_type, data },
            MediaSource::File(file_id) => Self::File { file_id },
            MediaSource::Url(url) => Self::Url { url },
            _ => Self::Url { url: "" },
        }
    }
}

/// Encodes a part; `None` if it is empty, or another provider's content that means nothing here.
pub(super) fn part_json<'a>(origin: &Origin, part: &'a Part) -> Option<BlockJson<'a>> {
    let media = match part {
        Part::Text(text) => return text_json(origin, text),
        Part::Image(media) | Part::Document(media) => media,
        Part::Other(raw) => return own(origin, Some(raw)).map(BlockJson::Raw),
        _ => return None,
    };
    if let Some(raw) = own(origin, media.raw.as_ref())
        && let Part::Image(was) | Part::Document(was) = read::part(raw, origin)
        && same_media(&was, media)
    {
        return Some(with_mark(raw, was.cache, media.cache));
    }
    let cache_control = media.cache.map(CacheControl::from);
    Some(if let Part::Image(_) = part {
        BlockJson::Image { source: Source::of(media, "image/png"), cache_control }
    } else {
        let source = Source::of(media, "application/pdf");
        BlockJson::Document { source, title: media.name.as_deref(), cache_control }
    })
}

/// Encodes a text, with the provider's own JSON if it still matches. The API rejects blank texts.
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

/// Returns the provider's own JSON, with the current cache marker.
fn with_mark<'a>(raw: &'a RawValue, was: Option<Cache>, wanted: Option<Cache>) -> BlockJson<'a> {
    if was == wanted { BlockJson::Raw(raw) } else { BlockJson::Marked(marked(raw, wanted)) }
}

/// Returns the JSON of a block or a tool with a different cache marker.
pub(super) fn marked(raw: &RawValue, cache: Option<Cache>) -> Value {
    let mut fields: Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
    fields.remove("cache_control");
    fields.extend(cache.map(|mark| ("cache_control".to_owned(), json!(CacheControl::from(mark)))));
    Value::Object(fields)
}

/// Checks that the API supports every medium of the conversation. Media at a URL or at the provider
/// are only rejected if they are audio or video.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for unsupported media, such as audio
/// and video; the error lists the supported ones.
pub(super) fn check(history: &History, origin: &Origin) -> Result<()> {
    check_media(history, origin, |part, media, _| {
        let mime = media.mime.as_deref()?;
        let is_of =
            |kinds: &[&str]| kinds.iter().any(|kind| mime == *kind || (kind.ends_with('/') && mime.starts_with(kind)));
        let is_taken = match (&media.source, part) {
            (MediaSource::Base64(_), Part::Image(_)) => is_of(&["image/jpeg", "image/png", "image/gif", "image/webp"]),
            (MediaSource::Base64(_), _) => is_of(&["application/pdf", "text/"]),
            _ => !is_of(&["audio/", "video/", "image/heic", "image/heif"]),
        };
        let taken = "images in JPEG, PNG, GIF and WebP, and documents in PDF and plain text";
        (!is_taken).then(|| format!("the model takes no {mime}: it takes {taken}"))
    })
}
