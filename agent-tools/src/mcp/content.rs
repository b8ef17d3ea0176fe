//! Conversion of a server's content to message parts.

use std::io;

use agent_core::{Error, Media, Part, Result, ToolOutput};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde::Serialize;

use super::lines::too_large;

/// Converts the result of a call.
pub(super) fn output(result: CallToolResult) -> ToolOutput {
    let failed = result.is_error == Some(true);
    let parts: Vec<Part> = result.content.into_iter().map(part).collect();
    let output = match result.structured_content {
        Some(value) if parts.is_empty() => ToolOutput::value(value),
        Some(value) => ToolOutput::value(value).shown_as(parts),
        None if parts.is_empty() => ToolOutput::text("The tool gave no content."),
        None => ToolOutput::parts(parts),
    };
    if failed { output.failed() } else { output }
}

/// Converts one content block.
pub(super) fn part(content: ContentBlock) -> Part {
    match content {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => picture(image.data, &image.mime_type, None),
        ContentBlock::Audio(audio) => document(audio.data, &audio.mime_type, None),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => Part::text(link_text(&link)),
        // Content kinds of a later protocol version leave a note, so that nothing is dropped
        // silently.
        other => Part::text(format!("[content of a kind that cannot be shown: {}]", kind(&other))),
    }
}

/// Converts the contents of a resource.
pub(super) fn resource(contents: ResourceContents) -> Part {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => Part::text(format!("[resource {uri}]\n{text}")),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime = mime_type.unwrap_or_else(|| "application/octet-stream".into());
            if mime.starts_with("image/") { picture(blob, &mime, Some(uri)) } else { document(blob, &mime, Some(uri)) }
        }
        other => Part::text(format!("[a resource of a kind that cannot be shown: {}]", kind(&other))),
    }
}

/// Image types that all models accept. An image that a provider rejects would stay in the
/// conversation, and make each later request fail.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Audio and document types that some provider accepts, without text types.
const DOCUMENTS: [&str; 16] = [
    "application/msword",
    "application/pdf",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "audio/aac",
    "audio/flac",
    "audio/m4a",
    "audio/mp3",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "audio/webm",
    "audio/x-wav",
];

fn picture(data: String, mime: &str, name: Option<String>) -> Part {
    match media(data, mime, name, &IMAGES) {
        Ok(media) => Part::Image(media),
        Err(length) => Part::text(format!("[an image that cannot be shown: {length} bytes]")),
    }
}

fn document(data: String, mime: &str, name: Option<String>) -> Part {
    if let Some(text) = text(&data, mime) {
        return Part::text(name.map_or_else(|| text.clone(), |name| format!("[resource {name}]\n{text}")));
    }
    let what = format!("{} of {:.100}", if mime.starts_with("audio/") { "a sound" } else { "a document" }, mime);
    let named = name.as_deref().map(|name| format!(" named {name:.500}")).unwrap_or_default();
    match media(data, mime, name, &DOCUMENTS) {
        Ok(media) => Part::Document(media),
        Err(length) => Part::text(format!("[{what}{named} that cannot be shown: {length} bytes]")),
    }
}

/// Decodes bytes as text, if their media type is textual.
fn text(data: &str, mime: &str) -> Option<String> {
    let of_text = mime.starts_with("text/")
        || ["json", "xml", "yaml", "javascript"].iter().any(|kind| essence(mime).ends_with(kind));
    String::from_utf8(BASE64_STANDARD.decode(data).ok().filter(|_| of_text)?).ok()
}

/// Returns the media type without its parameters.
fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns the medium if its type is one of `known`, otherwise its approximate size in bytes.
fn media(data: String, mime: &str, name: Option<String>, known: &[&str]) -> Result<Media, usize> {
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_whole = !data.is_empty() && data.len().is_multiple_of(4) && data.bytes().all(of_base64);
    if !is_whole || !known.contains(&&*essence(mime)) {
        return Err(data.len() / 4 * 3);
    }
    let media = Media::base64(data, essence(mime));
    Ok(if let Some(name) = name { media.with_name(name) } else { media })
}

/// Describes a link to a resource.
fn link_text(link: &Resource) -> String {
    let mut text = format!("[link to the resource {} named '{}'", link.uri, link.name);
    let more = [link.mime_type.clone(), link.size.map(|size| format!("{size} bytes")), link.description.clone()];
    more.into_iter().flatten().for_each(|fact| {
        text.push_str(", ");
        text.push_str(&fact);
    });
    text + "]"
}

/// Returns the protocol's name of a content kind.
fn kind(content: &impl Serialize) -> String {
    let value = serde_json::to_value(content).unwrap_or_default();
    value["type"].as_str().unwrap_or("unknown").to_owned()
}

/// Rejects content of more than `limit` bytes of JSON.
pub(super) fn check_size(content: &impl Serialize, limit: usize) -> Result<()> {
    let size = size(content);
    if size > limit { Err(Error::tool(too_large(size, limit))) } else { Ok(()) }
}

/// Returns the size as JSON in bytes.
pub(super) fn size(content: &impl Serialize) -> usize {
    let mut size = Size(0);
    // Writing to a counter cannot fail.
    let _ = serde_json::to_writer(&mut size, content);
    size.0
}

/// Counts the bytes written.
struct Size(usize);

impl io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_a_provider_would_refuse_is_told_in_words() {
        let of = |data: &str, mime: &str| picture(data.into(), mime, None);
        assert!(matches!(of("aGk=", "image/png"), Part::Image(_)));
        for (data, mime) in [
            ("aGk=", "image/heic"),
            ("aGk=", "image/x-foo"),
            ("a b=", "image/png"),
            ("aGk", "image/png"),
            ("", "image/png"),
        ] {
            assert!(matches!(of(data, mime), Part::Text(_)), "{data} {mime}");
        }
    }

    #[test]
    fn a_sound_or_a_document_that_no_provider_takes_is_told_in_words_and_text_is_text() {
        let of = |data: &str, mime: &str| document(data.into(), mime, Some("a://b".into()));
        assert!(matches!(of("aGk=", "audio/wav"), Part::Document(_)));
        assert!(matches!(of("aGk=", "Application/PDF; a=b"), Part::Document(_)));
        assert_eq!(of("aGk=", "text/csv; charset=utf-8").as_text(), Some("[resource a://b]\nhi"));
        assert_eq!(of("e30=", "application/ld+json").as_text(), Some("[resource a://b]\n{}"));
        for (data, mime) in [
            ("aGk=", "application/octet-stream"),
            ("aGk=", "audio/midi"),
            ("aGk=", "video/x-foo"),
            ("/w==", "text/plain"),
            ("not base64", "application/pdf"),
        ] {
            let words = of(data, mime);
            assert!(words.as_text().is_some_and(|text| text.contains("cannot be shown")), "{data} {mime}: {words:?}");
        }
    }
}
