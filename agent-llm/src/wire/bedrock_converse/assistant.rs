//! Writing what the model said, as far as possible in the words of its provider.

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Origin, Raw, Reasoning, ServerCall},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    messages::id,
    parts::{BlockJson, CallJson, Thoughts, nothing, plain, text_json},
    read,
};
use crate::wire::{
    content::Input,
    json::{knows, own, write as write_json},
};

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Vec<BlockJson<'a>>,
}

/// Writes `message`:
///
/// * as its provider sent it, if this is the provider and nobody edited it;
/// * if it was edited, block by block, each as its provider sent it unless it is one of those that were edited;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back.
pub(super) fn write(origin: &Origin, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(origin, raw));
    match own {
        Some(raw) if !message.is_edited() => {
            // Turns that follow each other stand in a list.
            let json = raw.json().trim();
            let json = json.strip_prefix('[').and_then(|json| json.strip_suffix(']')).unwrap_or(json);
            out.extend_from_slice(json.as_bytes());
        }
        _ => write_json(&Said { role: "assistant", content: Projection::new(origin, message, own).blocks() }, out),
    }
}

struct Projection<'a> {
    origin: &'a Origin,
    message: &'a AssistantMessage,
    is_own: bool,
    /// What the provider said, before it was edited.
    said: Vec<Block>,
}

impl<'a> Projection<'a> {
    fn new(origin: &'a Origin, message: &'a AssistantMessage, own: Option<&Raw>) -> Self {
        let said = own.and_then(|raw| read::turn(raw.json(), raw.origin()).ok()).unwrap_or_default();
        Self { origin, message, is_own: own.is_some(), said }
    }

    fn blocks(&self) -> Vec<BlockJson<'a>> {
        let mut blocks: Vec<_> = self.message.blocks().iter().filter_map(|block| self.block(block)).collect();
        if let Some(BlockJson::Text(text)) = blocks.last_mut().filter(|_| !self.is_own) {
            // The API takes no blanks at the end of a turn that it is to go on with.
            *text = match std::mem::take(text) {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim_end()),
                Cow::Owned(text) => Cow::Owned(text.trim_end().to_owned()),
            };
        }
        if blocks.is_empty() {
            blocks.push(nothing());
        }
        blocks
    }

    fn block(&self, block: &'a Block) -> Option<BlockJson<'a>> {
        match block {
            // Its own blanks the API takes back.
            Block::Text(text) if text.raw.is_none() && self.said.contains(block) => Some(plain(&*text.text)),
            Block::Text(text) => text_json(self.origin, text),
            Block::Reasoning(reasoning) => self.reasoning(block, reasoning),
            Block::ToolCall(call) => Some(self.call(call)),
            Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => {
                own(self.origin, Some(raw)).map(BlockJson::Raw)
            }
            // The API takes none of the model's own: that there was one is said.
            Block::Image(_) => Some(plain("[image]")),
            Block::Document(_) => Some(plain("[document]")),
            _ => None,
        }
    }

    /// Only as the provider said it.
    fn reasoning(&self, block: &'a Block, reasoning: &'a Reasoning) -> Option<BlockJson<'a>> {
        if !self.said.contains(block) {
            return None;
        }
        Some(match (own(self.origin, reasoning.raw.as_ref()), &reasoning.encrypted) {
            (Some(own), _) => BlockJson::Raw(own),
            (None, Some(data)) => BlockJson::ReasoningContent(Thoughts::RedactedContent(data)),
            (None, None) => BlockJson::ReasoningContent(Thoughts::ReasoningText {
                text: &reasoning.text,
                signature: reasoning.signature.as_deref(),
            }),
        })
    }

    fn call(&self, call: &'a ToolCall) -> BlockJson<'a> {
        if let Some(own) = own(self.origin, call.raw.as_ref()).filter(|own| self.still_says(own, call)) {
            return BlockJson::Raw(own);
        }
        let tool_use_id = if self.is_own { Cow::Borrowed(&*call.id) } else { id(&call.id) };
        BlockJson::ToolUse(CallJson { tool_use_id, name: &call.name, input: Input::new(&call.arguments) })
    }

    /// True if the provider's JSON is still of this call: it may have been edited.
    fn still_says(&self, own: &RawValue, call: &ToolCall) -> bool {
        matches!(read::block(own.get(), self.origin), Block::ToolCall(was)
            if (&was.id, &was.name, &was.arguments) == (&call.id, &call.name, &call.arguments))
    }
}
