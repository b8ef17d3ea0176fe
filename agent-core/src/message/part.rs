//! [`Part`]: content of user messages, system messages and tool results.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Raw;

/// One part of a user message, a system message or a tool result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(Text),
    /// An image.
    Image(Media),
    /// A document: PDF and similar; also audio and video.
    Document(Media),
    /// Provider-specific content that this crate does not interpret. It is sent back to its
    /// provider unchanged.
    Other(Raw),
}

/// A piece of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Text {
    /// The text.
    pub text: String,
    /// Sources that the model cites for the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Requests that the provider caches the prompt up to the end of this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// The provider's JSON of this block, if it contains more than the text (for example
    /// citations).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// Source of a text, as cited by a model. The provider-specific form is in the text's raw JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Citation {
    /// URL of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Title of the source, or name of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Quoted text of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Index of the source among the documents, or the search results, of the request, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<u32>,
    /// The provider's id of the source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Location within the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePlace>,
    /// Byte range of the text that the source supports; `None` for the whole text, or if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Range<usize>>,
}

/// Location within a source: half-open range from the first to the second number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourcePlace {
    /// Characters, from 0.
    Characters(u64, u64),
    /// Pages, from 1.
    Pages(u64, u64),
    /// Blocks of the source, from 0.
    Blocks(u64, u64),
}

impl Citation {
    /// Creates a citation of this URL.
    pub fn of_url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// Sets the title of the source.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// Requested lifetime of a prompt in the provider's cache. Not sent to providers with automatic
/// caching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cache {
    /// The provider's default lifetime: five minutes at Anthropic.
    #[default]
    Short,
    /// The longest lifetime that the provider offers: one hour at Anthropic.
    Long,
}

/// An image or a document (pages, audio, video), as determined by its media type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// Location of the bytes.
    pub source: MediaSource,
    /// The media type, such as `image/png`; providers need it with [`MediaSource::Base64`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// File name for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Requests that the provider caches the prompt up to the end of this part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// The provider's JSON of this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// Location of the bytes of a [`Media`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// At a URL that the provider fetches.
    Url(String),
    /// Inline, in standard base64.
    Base64(String),
    /// In the provider's file store, under this id.
    File(String),
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }

    /// The text, if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(t) => Some(&t.text),
            _ => None,
        }
    }
}

impl Text {
    /// Creates a text without further data.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the provider's JSON.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<Option<Raw>>) -> Self {
        self.raw = raw.into();
        self
    }

    /// Requests that the provider caches the prompt up to the end of this text.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// True if there is no text and no other data.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.raw.is_none() && self.citations.is_empty()
    }
}

impl Media {
    /// Creates media from a source.
    pub fn new(source: MediaSource) -> Self {
        Self { source, mime: None, name: None, cache: None, raw: None }
    }

    /// Creates media from a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(MediaSource::Url(url.into()))
    }

    /// Creates inline media from base64 text and its media type.
    pub fn base64(data: impl Into<String>, mime: impl Into<String>) -> Self {
        Self::new(MediaSource::Base64(data.into())).with_mime(mime)
    }

    /// Creates media from a file in a provider's file store.
    pub fn file(id: impl Into<String>) -> Self {
        Self::new(MediaSource::File(id.into()))
    }

    /// True for audio.
    pub fn is_audio(&self) -> bool {
        self.mime.as_deref().is_some_and(|mime| mime.starts_with("audio/"))
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Sets the file name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the provider's JSON.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<Option<Raw>>) -> Self {
        self.raw = raw.into();
        self
    }

    /// Requests that the provider caches the prompt up to the end of this part.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }
}

impl From<Text> for Part {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// Joins the text parts by line breaks.
pub(crate) fn join_text(parts: &[Part]) -> String {
    join(parts.iter().filter_map(Part::as_text))
}

pub(super) fn join<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for text in texts {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    }
    out
}
