//! What people, programs and tools say: [`Part`].

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Raw;

/// One piece of a user message, a system message or a tool result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(Text),
    /// An image.
    Image(Media),
    /// A document: PDF and the like; sound and film too.
    Document(Media),
    /// Content of a provider that this framework does not interpret. It goes back to that provider unchanged.
    Other(Raw),
}

/// A piece of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Text {
    /// The text.
    pub text: String,
    /// What the model says it has the text from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Asks the provider to cache the prompt up to the end of this piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// The provider's own JSON of this block, if it says more than the text (citations, for example).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// Where a model has a piece of text from. A provider's own form of it is in the text's raw JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Citation {
    /// The address of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The title of the source, or the name of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The words of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The source's number among the documents, or the search results, of the request, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<u32>,
    /// The provider's id of the file that is the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePlace>,
    /// The bytes of the text that the source supports; none if it is the whole text, or nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Range<usize>>,
}

/// Where in a source something is: from the first number up to, and without, the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SourcePlace {
    /// Characters, from 0.
    Characters(u64, u64),
    /// Pages, from 1.
    Pages(u64, u64),
    /// Pieces that the source is made of, from 0.
    Blocks(u64, u64),
}

impl Citation {
    /// A source at this address.
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

/// How long a provider is asked to keep a prompt in its cache. Providers that cache by themselves are told nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cache {
    /// As long as the provider does by default: five minutes at Anthropic.
    #[default]
    Short,
    /// As long as the provider offers: an hour at Anthropic.
    Long,
}

/// An image, or a document: pages, sound, film. What it is, its media type says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Media {
    /// Where the bytes are.
    pub source: MediaSource,
    /// The media type, such as `image/png`; providers need it with [`MediaSource::Base64`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// A file name for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Asks the provider to cache the prompt up to the end of this piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// The provider's own JSON of this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// Where the bytes of a [`Media`] are.
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
    /// A text part.
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
    /// This text, and nothing else about it.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the provider's own JSON.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<Option<Raw>>) -> Self {
        self.raw = raw.into();
        self
    }

    /// Asks the provider to cache the prompt up to the end of this text.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// True if there is neither text nor anything else.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.raw.is_none() && self.citations.is_empty()
    }
}

impl Media {
    /// Media of which only the source is known.
    pub fn new(source: MediaSource) -> Self {
        Self { source, mime: None, name: None, cache: None, raw: None }
    }

    /// Media at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(MediaSource::Url(url.into()))
    }

    /// Inline media: base64 text and its media type.
    pub fn base64(data: impl Into<String>, mime: impl Into<String>) -> Self {
        Self::new(MediaSource::Base64(data.into())).with_mime(mime)
    }

    /// Media in a provider's file store.
    pub fn file(id: impl Into<String>) -> Self {
        Self::new(MediaSource::File(id.into()))
    }

    /// True if it is sound.
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

    /// Sets the provider's own JSON.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<Option<Raw>>) -> Self {
        self.raw = raw.into();
        self
    }

    /// Asks the provider to cache the prompt up to the end of this piece.
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

/// Text parts joined by line breaks.
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
