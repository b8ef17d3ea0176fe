//! Images, documents, video and audio in the API's form: a format name, and bytes or a location in
//! S3.

use std::borrow::Cow;

use agent_core::{
    History, Media, Part, Result,
    message::{MediaSource, Origin},
};
use serde::Serialize;

use super::{parts::BlockJson, read};
use crate::wire::{
    content::{check_media, same_media},
    json::own,
};

/// Media types, with their block and format in the API.
const FORMS: [(&str, Kind, &str); 33] = [
    ("image/png", Kind::Image, "png"),
    ("image/jpeg", Kind::Image, "jpeg"),
    ("image/gif", Kind::Image, "gif"),
    ("image/webp", Kind::Image, "webp"),
    ("application/pdf", Kind::Document, "pdf"),
    ("text/csv", Kind::Document, "csv"),
    ("application/msword", Kind::Document, "doc"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", Kind::Document, "docx"),
    ("application/vnd.ms-excel", Kind::Document, "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", Kind::Document, "xlsx"),
    ("text/html", Kind::Document, "html"),
    ("text/plain", Kind::Document, "txt"),
    ("text/markdown", Kind::Document, "md"),
    ("video/x-matroska", Kind::Video, "mkv"),
    ("video/quicktime", Kind::Video, "mov"),
    ("video/mp4", Kind::Video, "mp4"),
    ("video/webm", Kind::Video, "webm"),
    ("video/x-flv", Kind::Video, "flv"),
    ("video/mpeg", Kind::Video, "mpeg"),
    ("video/mpg", Kind::Video, "mpg"),
    ("video/x-ms-wmv", Kind::Video, "wmv"),
    ("video/3gpp", Kind::Video, "three_gp"),
    ("audio/mpeg", Kind::Audio, "mp3"),
    ("audio/opus", Kind::Audio, "opus"),
    ("audio/wav", Kind::Audio, "wav"),
    ("audio/aac", Kind::Audio, "aac"),
    ("audio/flac", Kind::Audio, "flac"),
    ("audio/mp4", Kind::Audio, "mp4"),
    ("audio/ogg", Kind::Audio, "ogg"),
    ("audio/x-matroska", Kind::Audio, "mka"),
    ("audio/webm", Kind::Audio, "webm"),
    ("audio/m4a", Kind::Audio, "m4a"),
    ("audio/l16", Kind::Audio, "pcm"),
];

/// Maximum length of a document's name.
const LONGEST_NAME: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Image,
    Document,
    Video,
    Audio,
}

impl Kind {
    /// Returns the media type for this format.
    pub(super) fn mime_of(self, form: &str) -> Option<&'static str> {
        FORMS.iter().find(|(_, kind, known)| (*kind, *known) == (self, form)).map(|(mime, ..)| *mime)
    }
}

#[derive(Serialize)]
pub(super) struct MediaJson<'a> {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    source: Source<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Source<'a> {
    Bytes(&'a str),
    S3Location { uri: &'a str },
}

/// Encodes media, with the provider's own JSON if it still matches. `usual` is the default media
/// type, and `place` determines the name of a document that has none.
pub(super) fn media_json<'a>(origin: &Origin, media: &'a Media, usual: &str, place: (usize, usize)) -> BlockJson<'a> {
    if let Some(raw) = own(origin, media.raw.as_ref())
        && let Part::Image(was) | Part::Document(was) = read::part(raw, origin)
        && same_media(&was, media)
    {
        return BlockJson::Raw(raw);
    }
    let (kind, format) = form(media.mime.as_deref().unwrap_or(usual)).unwrap_or((Kind::Document, "txt"));
    let source = match &media.source {
        MediaSource::Base64(bytes) => Source::Bytes(bytes),
        MediaSource::Url(uri) | MediaSource::File(uri) => Source::S3Location { uri },
        _ => Source::Bytes(""),
    };
    let json = |name| MediaJson { format, name, source };
    match kind {
        Kind::Image => BlockJson::Image(json(None)),
        Kind::Video => BlockJson::Video(json(None)),
        Kind::Audio => BlockJson::Audio(json(None)),
        Kind::Document => BlockJson::Document(json(Some(name(media, place)))),
    }
}

fn form(mime: &str) -> Option<(Kind, &'static str)> {
    let mime = mime.split(';').next().unwrap_or_default().trim();
    FORMS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(mime)).map(|(_, kind, format)| (*kind, *format))
}

/// Returns the name of a document: mandatory, and consisting of letters, digits, single spaces,
/// hyphens and brackets.
fn name(media: &Media, (message, part): (usize, usize)) -> Cow<'_, str> {
    let Some(name) = media.name.as_deref() else { return format!("document-{message}-{part}").into() };
    let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '(' | ')' | '[' | ']');
    if name.len() <= LONGEST_NAME && name.chars().all(is_taken) && !name.contains("  ") && !name.trim().is_empty() {
        return name.into();
    }
    let name: String = name.chars().take(LONGEST_NAME).map(|c| if is_taken(c) { c } else { '-' }).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() { format!("document-{message}-{part}").into() } else { name.into() }
}

/// Checks that the API supports every medium of the conversation.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for a media type that the API does not
/// support, and for URLs outside of S3.
pub(super) fn check(history: &History, origin: &Origin) -> Result<()> {
    check_media(history, origin, |_, media, is_of_result| {
        let mime = media.mime.as_deref();
        match (mime, mime.and_then(form), &media.source) {
            (Some(mime), None, _) => Some(format!("Bedrock takes no {mime}")),
            (_, Some((Kind::Audio, _)), _) if is_of_result => {
                Some("Bedrock takes no sound in a tool's result: give it in a message of the user".to_owned())
            }
            (.., MediaSource::Url(uri) | MediaSource::File(uri)) if !uri.starts_with("s3://") => {
                Some(format!("Bedrock reads no {uri}: send the bytes, or an address that begins with s3://"))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_a_name_that_the_api_takes() {
        let named = |said: &str| name(&Media::url("s3://a/b").with_name(said), (3, 1)).into_owned();
        assert_eq!(named("Report (2) [final]"), "Report (2) [final]");
        assert_eq!(named("report_2025.v1.pdf"), "report-2025-v1-pdf");
        assert_eq!(named("two  blanks"), "two blanks");
        assert_eq!(named(" "), "document-3-1");
        assert_eq!(name(&Media::url("s3://a/b"), (3, 1)), "document-3-1");
    }

    #[test]
    fn each_form_has_one_type() {
        for (mime, kind, format) in FORMS {
            assert_eq!((form(mime), kind.mime_of(format)), (Some((kind, format)), Some(mime)));
        }
    }
}
