//! What a server gives back, as parts that a model is shown.

use std::io;

use agent_core::{Error, Media, Part, Result, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde::Serialize;

use super::lines::too_large;

/// The result of a call.
pub(super) fn output(result: CallToolResult, limit: usize) -> Result<ToolOutput> {
    check_size(&result, limit)?;
    let failed = result.is_error == Some(true);
    let parts: Vec<Part> = result.content.into_iter().map(part).collect();
    let output = match result.structured_content {
        Some(value) if parts.is_empty() => ToolOutput::value(value),
        Some(value) => ToolOutput::value(value).shown_as(parts),
        None if parts.is_empty() => ToolOutput::text("The tool gave no content."),
        None => ToolOutput::parts(parts),
    };
    Ok(if failed { output.failed() } else { output })
}

/// One piece of content.
pub(super) fn part(content: ContentBlock) -> Part {
    match content {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => picture(image.data, image.mime_type, None),
        ContentBlock::Audio(audio) => Part::Document(Media::base64(audio.data, audio.mime_type)),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => Part::text(link_text(&link)),
        // A later release of the protocol has it: nothing is left out in silence.
        other => Part::text(format!("[content of a kind that cannot be shown: {}]", kind(&other))),
    }
}

/// What a resource holds.
pub(super) fn resource(contents: ResourceContents) -> Part {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => Part::text(format!("[resource {uri}]\n{text}")),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime = mime_type.unwrap_or_else(|| "application/octet-stream".into());
            if mime.starts_with("image/") {
                return picture(blob, mime, Some(uri));
            }
            Part::Document(Media::base64(blob, mime).with_name(uri))
        }
        other => Part::text(format!("[a resource of a kind that cannot be shown: {}]", kind(&other))),
    }
}

/// The images that all models take. One that a provider refuses would stay in the conversation, and have each later request refused.
const SHOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

fn picture(data: String, mime: String, name: Option<String>) -> Part {
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if !SHOWN.contains(&mime.as_str())
        || data.is_empty()
        || !data.len().is_multiple_of(4)
        || !data.bytes().all(of_base64)
    {
        return Part::text(format!("[an image that cannot be shown: {} bytes]", data.len() / 4 * 3));
    }
    let media = Media::base64(data, mime);
    Part::Image(if let Some(name) = name { media.with_name(name) } else { media })
}

/// A link to a resource, in words.
fn link_text(link: &Resource) -> String {
    let mut text = format!("[link to the resource {} named '{}'", link.uri, link.name);
    let more = [link.mime_type.clone(), link.size.map(|size| format!("{size} bytes")), link.description.clone()];
    more.into_iter().flatten().for_each(|fact| {
        text.push_str(", ");
        text.push_str(&fact);
    });
    text + "]"
}

/// The name that the protocol has for the content's kind.
fn kind(content: &impl Serialize) -> String {
    let value = serde_json::to_value(content).unwrap_or_default();
    value["type"].as_str().unwrap_or("unknown").to_owned()
}

/// Refuses what is larger than `limit` bytes as JSON.
pub(super) fn check_size(content: &impl Serialize, limit: usize) -> Result<()> {
    let mut size = Size(0);
    // Only the size can be wrong, and nobody is told of a size that is right.
    let _ = serde_json::to_writer(&mut size, content);
    if size.0 > limit { Err(Error::tool(too_large(size.0, limit))) } else { Ok(()) }
}

/// Counts what is written.
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
        let of = |data: &str, mime: &str| picture(data.into(), mime.into(), None);
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
}
