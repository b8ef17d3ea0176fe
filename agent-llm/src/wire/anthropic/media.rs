//! Images and documents, as the API takes them.

use agent_core::{
    Error, ErrorKind, History, Media, Message, Part, Result, Retry,
    message::{MediaSource, Origin},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;

use super::{
    parts::{BlockJson, with_mark},
    read,
};
use crate::wire::{cache_control::CacheControl, json::own};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Text { media_type: &'static str, data: String },
    Url { url: &'a str },
    File { file_id: &'a str },
}

impl<'a> Source<'a> {
    /// Where `media` is; `usual` is the type of what does not say its own.
    fn of(media: &'a Media, usual: &'a str) -> Self {
        let media_type = media.mime.as_deref().unwrap_or(usual);
        match &media.source {
            // In base64 the API takes pages and pictures alone.
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

/// The image or the document, in the provider's own JSON if that still says the same.
pub(super) fn media_json<'a>(origin: &Origin, media: &'a Media, is_document: bool) -> BlockJson<'a> {
    if let Some(raw) = own(origin, media.raw.as_ref())
        && let Part::Image(was) | Part::Document(was) = read::part(raw, origin)
        && (&was.source, &was.mime, &was.name) == (&media.source, &media.mime, &media.name)
    {
        return with_mark(raw, was.cache, media.cache);
    }
    let cache_control = media.cache.map(CacheControl::from);
    if is_document {
        let source = Source::of(media, "application/pdf");
        BlockJson::Document { source, title: media.name.as_deref(), cache_control }
    } else {
        BlockJson::Image { source: Source::of(media, "image/png"), cache_control }
    }
}

/// Checks that the API has a form for every medium of the conversation. What goes back as the provider sent it has one.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`] for media that it does not take, such as sound and film, with those that it does.
pub(super) fn check(history: &History, origin: &Origin) -> Result<()> {
    let parts = history.iter().flat_map(|message| match message {
        Message::User(message) => message.parts(),
        Message::Tool(message) => message.parts(),
        Message::System(_) | Message::Assistant(_) => &[],
    });
    let mut refused = parts.filter_map(|part| match part {
        Part::Image(media) => refused(media, origin, &["image/jpeg", "image/png", "image/gif", "image/webp"]),
        Part::Document(media) => refused(media, origin, &["application/pdf", "text/"]),
        _ => None,
    });
    let Some(refused) = refused.next() else { return Ok(()) };
    let message = format!(
        "the model takes no {refused}: it takes images in JPEG, PNG, GIF and WebP, and documents in PDF and plain text"
    );
    Err(Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent))
}

/// The type of a medium that is none of those `taken`. What is at an address or at the provider is what the provider finds there,
/// but for sound and film.
fn refused<'a>(media: &'a Media, origin: &Origin, taken: &[&str]) -> Option<&'a str> {
    let mime = media.mime.as_deref()?;
    let is_of =
        |kinds: &[&str]| kinds.iter().any(|kind| mime == *kind || (kind.ends_with('/') && mime.starts_with(kind)));
    let is_taken = match &media.source {
        _ if own(origin, media.raw.as_ref()).is_some() => true,
        MediaSource::Base64(_) => is_of(taken),
        _ => !is_of(&["audio/", "video/", "image/heic", "image/heif"]),
    };
    (!is_taken).then_some(mime)
}
