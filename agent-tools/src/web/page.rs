//! Conversion of a response body to a page for a model.

use std::time::Instant;

use agent_core::{Error, Result, message::Media};
use base64::{Engine, engine::general_purpose::STANDARD};
use url::Url;

use super::{charset, fetch::Limits, html};
use crate::documents::{parser_pool::ParserPool, pdf};

/// Page as shown to a model.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Final address after redirects.
    pub(super) url: Url,
    /// Title on one line.
    pub(super) title: Option<String>,
    pub(super) content: Content,
    /// Note about the content.
    pub(super) note: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Text(String),
    Image(Media),
}

/// Kinds of content, by their conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Pdf,
    Image,
}

/// Maximum size of a title in bytes: it may be the whole page.
const LONGEST_TITLE: usize = 300;

/// Metadata of a response body.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) url: Url,
    /// `Content-Type` header; empty if missing.
    pub(super) content_type: String,
}

impl Source {
    /// Rejects content that would not be shown, before it is downloaded.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool), with the media type.
    pub(super) fn check(&self, limits: &Limits) -> Result<()> {
        let mime = self.mime();
        match kind(&mime) {
            Some(Kind::Pdf) if !limits.pdf => Err(Error::tool("this is a PDF, and PDFs are not read here")),
            Some(Kind::Image) if !limits.images => {
                Err(Error::tool(format!("this is an image ({mime}), and images are not shown here")))
            }
            Some(_) => Ok(()),
            None => Err(Error::tool(format!(
                "this is '{}', and only HTML, text, JSON, XML and PDF are read",
                crate::text::cut(&mime, 80)
            ))),
        }
    }

    fn mime(&self) -> String {
        self.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Converts the body to a page.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the body does not match its media type, or
    /// the conversion takes too long.
    pub(super) async fn page(self, body: Vec<u8>, limits: Limits, apart: &ParserPool) -> Result<Page> {
        let mime = self.mime();
        let kind = sniffed(kind(&mime), &mime, &body, &limits)?;
        apart.run(kind.name(), move |end| self.convert(kind, &mime, &body, limits.bytes, end)).await
    }

    fn convert(self, kind: Kind, mime: &str, body: &[u8], most: usize, end: Instant) -> Result<Page> {
        let (mut title, mut note) = (None, None);
        let content = match kind {
            Kind::Html => {
                let page = html::read(&charset::decode(body, &self.content_type, true), &self.url, end)?;
                title = page.title;
                note = page.cut.then_some("some of the page is nested too deeply and is left out");
                if page.markdown.is_empty() {
                    note = Some("the page has no text: it may be made by scripts, which are not run here");
                }
                Content::Text(page.markdown)
            }
            Kind::Pdf => {
                let read = pdf::read(body, 1..=u32::MAX, most, end)?;
                title = read.title;
                note = (read.last < read.pages).then_some("the rest of the PDF is longer than what is read");
                Content::Text(read.text)
            }
            Kind::Text => Content::Text(charset::decode(body, &self.content_type, false)),
            Kind::Image => Content::Image(Media::base64(STANDARD.encode(body), mime)),
        };
        let title = title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        let title = title.map(|title| crate::text::cut(&title, LONGEST_TITLE).to_owned());
        Ok(Page { url: self.url, title, content, note })
    }
}

impl Page {
    /// Estimates the memory of the page in bytes.
    pub(super) fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Text(text) => text.len(),
            Content::Image(image) => match &image.source {
                agent_core::message::MediaSource::Base64(data) => data.len(),
                _ => 0,
            },
        };
        content + self.url.as_str().len() + 256
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Html => "the page",
            Self::Text => "the text",
            Self::Pdf => "the PDF",
            Self::Image => "the image",
        }
    }
}

/// Returns the kind of a media type; `None` if it is unsupported. Without a media type, the body
/// determines the kind.
fn kind(mime: &str) -> Option<Kind> {
    let text = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/x-ndjson",
        "",
    ];
    match mime {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/pdf" | "application/x-pdf" => Some(Kind::Pdf),
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Some(Kind::Image),
        _ if mime.starts_with("text/") || text.contains(&mime) || mime.ends_with("+json") || mime.ends_with("+xml") => {
            (mime != "image/svg+xml").then_some(Kind::Text)
        }
        _ => None,
    }
}

/// Determines the kind from the body: binary content is not shown as text, and the image type is
/// detected.
fn sniffed(kind: Option<Kind>, mime: &str, body: &[u8], limits: &Limits) -> Result<Kind> {
    let lie = || Error::tool(format!("the content is not the '{mime}' that the server says it is"));
    match kind {
        Some(Kind::Image) if !is_image(mime, body) => Err(lie()),
        Some(kind @ (Kind::Image | Kind::Html)) => Ok(kind),
        Some(Kind::Pdf) if !has_early(body, b"%PDF-") => Err(lie()),
        Some(Kind::Pdf) => Ok(Kind::Pdf),
        _ if has_early(body, b"%PDF-") && !limits.pdf => Err(Error::tool("this is a PDF, and PDFs are not read here")),
        _ if mime.is_empty() && has_early(body, b"%PDF-") => Ok(Kind::Pdf),
        _ if mime.is_empty() && looks_like_html(body) => Ok(Kind::Html),
        _ if is_binary(body) => Err(Error::tool("the content is not text")),
        _ => Ok(Kind::Text),
    }
}

fn is_image(mime: &str, body: &[u8]) -> bool {
    match mime {
        "image/png" => body.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => body.starts_with(b"\xff\xd8\xff"),
        "image/gif" => body.starts_with(b"GIF8"),
        _ => body.starts_with(b"RIFF") && body.get(8..12) == Some(b"WEBP"),
    }
}

fn has_early(body: &[u8], mark: &[u8]) -> bool {
    body[..body.len().min(1024)].windows(mark.len()).any(|window| window == mark)
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&body[..body.len().min(512)]).to_ascii_lowercase();
    start.contains("<!doctype html") || start.contains("<html")
}

/// Returns true if there is a zero byte early on, and the text is not UTF-16.
fn is_binary(body: &[u8]) -> bool {
    let utf16 = body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff") || charset::utf16(body).is_some();
    !utf16 && body[..body.len().min(1024)].contains(&0)
}
