//! Content of a prompt.

use agent::{
    Message, Part,
    message::{Media, UserMessage},
};
use serde_json::Value;

use super::desk::Refusal;

/// Converts content blocks into a message.
///
/// # Errors
/// [`Refusal`] if the content is empty, or a block's type is not supported.
pub(super) fn message(blocks: &[Value]) -> Result<Message, Refusal> {
    let parts = blocks.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    if parts.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty())) {
        return Err(Refusal::invalid("the prompt is empty"));
    }
    Ok(Message::User(UserMessage::new(parts)))
}

fn part(block: &Value) -> Result<Part, Refusal> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(match block["type"].as_str().unwrap_or_default() {
        "text" => Part::text(text(&block["text"])),
        "image" => Part::Image(Media::base64(text(&block["data"]), text(&block["mimeType"]))),
        "audio" => Part::Document(Media::base64(text(&block["data"]), text(&block["mimeType"]))),
        // Only the agent's own tools can read a linked resource.
        "resource_link" => Part::text(format!("[{}]({})", text(&block["name"]), text(&block["uri"]))),
        "resource" => {
            let resource = &block["resource"];
            let name = text(&resource["uri"]).replace(['"', '<', '>'], "_");
            match resource["blob"].as_str() {
                Some(blob) => Part::Document(Media::base64(blob, text(&resource["mimeType"])).with_name(name)),
                None => Part::text(format!("<file name=\"{name}\">\n{}\n</file>", text(&resource["text"]))),
            }
        }
        other => return Err(Refusal::invalid(format!("unsupported content type '{other}'"))),
    })
}
