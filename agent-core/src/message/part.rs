//! What people, programs and tools say: [`Part`].

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
    /// A document: PDF and the like.
    Document(Media),
    /// Content of a provider that this framework does not interpret. It goes back to that provider unchanged.
    Other(Raw),
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
    /// The provider's own JSON of this block, if it says more than the text (citations, for example).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// An image or a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Where the bytes are.
    pub source: MediaSource,
    /// The media type, such as `image/png`; providers need it with [`MediaSource::Base64`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// A file name for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
        Self::Text(Text { text: text.into(), raw: None })
    }

    /// The text, if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(t) => Some(&t.text),
            _ => None,
        }
    }
}

impl Media {
    /// Media at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: MediaSource::Url(url.into()), mime: None, name: None, raw: None }
    }

    /// Inline media: base64 text and its media type.
    pub fn base64(data: impl Into<String>, mime: impl Into<String>) -> Self {
        Self { source: MediaSource::Base64(data.into()), mime: Some(mime.into()), name: None, raw: None }
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
