//! Conversion of tool outputs to content for a client.

use agent_core::{Block, Error, ErrorKind, Media, Message, Part, Result, ToolOutput, message::MediaSource};
use rmcp::model::{AudioContent, CallToolResult, ContentBlock, PromptMessage, Resource, ResourceContents, Role};

/// Converts the result of a call; with `any`, its structured content is any JSON.
pub(super) fn result(output: &ToolOutput, any: bool) -> CallToolResult {
    let content = output.content().iter().map(block).collect();
    let mut result = if output.is_error() { CallToolResult::error(content) } else { CallToolResult::success(content) };
    // Clients of older revisions accept objects only.
    result.structured_content = output.as_value().filter(|value| any || value.is_object()).cloned();
    result
}

/// Converts the error of a failed call. Details and causes are not disclosed.
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

/// Converts the contents of a resource, part by part.
pub(super) fn resource(output: &ToolOutput, uri: &str, mime: Option<&str>) -> Vec<ResourceContents> {
    let piece = |part: &Part| match part {
        Part::Image(Media { source: MediaSource::Base64(data), mime: own, .. })
        | Part::Document(Media { source: MediaSource::Base64(data), mime: own, .. }) => {
            let mime = own.as_deref().or(mime).unwrap_or("application/octet-stream");
            ResourceContents::blob(data.clone(), uri).with_mime_type(mime)
        }
        Part::Image(Media { source: MediaSource::Url(url), .. })
        | Part::Document(Media { source: MediaSource::Url(url), .. }) => {
            ResourceContents::text(url.clone(), uri).with_mime_type("text/uri-list")
        }
        Part::Text(text) => ResourceContents::text(text.text.clone(), uri).with_mime_type(mime.unwrap_or("text/plain")),
        _ => ResourceContents::text("[content of a provider that cannot be shown]", uri),
    };
    output.content().iter().map(piece).collect()
}

/// Converts the messages of a prompt, one per content part, as the protocol requires.
///
/// # Errors
/// For a message of another role than user or assistant, and for tool calls.
pub(super) fn prompt(messages: &[Message]) -> Result<Vec<PromptMessage>> {
    let wrong = |what: &str| Error::new(ErrorKind::InvalidRequest, format!("a prompt cannot have {what}"));
    let mut told = Vec::new();
    for message in messages {
        match message {
            Message::User(user) => {
                told.extend(user.parts().iter().map(|part| PromptMessage::new(Role::User, block(part))));
            }
            Message::Assistant(assistant) => {
                for said in assistant.blocks() {
                    let block = match said {
                        Block::Text(text) => ContentBlock::text(text.text.clone()),
                        Block::Image(media) => media_block(media, true),
                        Block::Document(media) => media_block(media, false),
                        _ => return Err(wrong("what an assistant does beside saying something")),
                    };
                    told.push(PromptMessage::new(Role::Assistant, block));
                }
            }
            Message::System(_) | Message::Tool(_) => return Err(wrong("messages of others than users and assistants")),
        }
    }
    Ok(told)
}
