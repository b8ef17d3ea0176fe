//! What tools give back, as content for a client.

use agent_core::{Error, Media, Part, ToolOutput, message::MediaSource};
use rmcp::model::{AudioContent, CallToolResult, ContentBlock, Resource, ResourceContents};

/// The result of a call.
pub(super) fn result(output: &ToolOutput) -> CallToolResult {
    let content = output.content().iter().map(block).collect();
    let mut result = if output.is_error() { CallToolResult::error(content) } else { CallToolResult::success(content) };
    // Older clients take an object alone.
    result.structured_content = output.as_value().filter(|value| value.is_object()).cloned();
    result
}

/// The result of a call that failed. Neither facts nor causes are told.
pub(super) fn failure(error: &Error) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.message())])
}

fn block(part: &Part) -> ContentBlock {
    match part {
        Part::Text(text) => ContentBlock::text(text.text.clone()),
        Part::Image(media) => media_block(media, true),
        Part::Document(media) => media_block(media, false),
        _ => ContentBlock::text("[content of a provider that cannot be shown]"),
    }
}

fn media_block(media: &Media, is_image: bool) -> ContentBlock {
    let mime = media.mime.clone().unwrap_or_else(|| "application/octet-stream".into());
    let name = media.name.clone().unwrap_or_else(|| "document".into());
    match &media.source {
        MediaSource::Base64(data) if is_image => ContentBlock::image(data.clone(), mime),
        MediaSource::Base64(data) if media.is_audio() => ContentBlock::Audio(AudioContent::new(data.clone(), mime)),
        MediaSource::Base64(data) => {
            let uri = if name.contains("://") { name } else { format!("result:///{name}") };
            ContentBlock::resource(ResourceContents::blob(data.clone(), uri).with_mime_type(mime))
        }
        MediaSource::Url(url) => ContentBlock::resource_link(Resource::new(url.clone(), name).with_mime_type(mime)),
        _ => ContentBlock::text(format!("[{name}: a file in a provider's store]")),
    }
}
