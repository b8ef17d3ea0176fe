//! Writing the conversation.

use std::borrow::Cow;

use agent_core::{
    Block, Message, Part, SystemMessage, Text, ToolCall, ToolMessage,
    message::{Origin, Reasoning},
};
use serde_json::value::RawValue;

use super::{
    parts::{BlockJson, Content, EMPTY, part_json, plain, text_json},
    read,
};
use crate::wire::{
    cache_control::CacheControl,
    content::Input,
    ids::plain_id,
    json::own,
    two_roles::{self, TwoRoles, Words},
};

/// How messages are written to this provider.
pub(super) struct Messages<'a>(pub(super) &'a Origin);

impl TwoRoles for Messages<'_> {
    type Block<'b> = BlockJson<'b>;

    fn origin(&self) -> &Origin {
        self.0
    }

    fn blocks<'b>(&self, _: usize, message: &'b Message, keeps_ids: bool) -> Vec<BlockJson<'b>> {
        match message {
            Message::Tool(result) => vec![self.result(result, keeps_ids)],
            Message::User(message) => self.spoken(message.parts()).collect(),
            Message::System(message) => vec![instructions(message)],
            Message::Assistant(_) => Vec::new(),
        }
    }

    fn nothing<'b>() -> BlockJson<'b> {
        plain(EMPTY)
    }

    fn read_turn(json: &str, origin: &Origin) -> serde_json::Result<Vec<Block>> {
        read::turn(json, origin)
    }

    fn read(json: &str, origin: &Origin) -> Block {
        read::block(json, origin)
    }

    fn own(json: &RawValue) -> BlockJson<'_> {
        BlockJson::Raw(json)
    }

    fn plain(text: &str) -> BlockJson<'_> {
        plain(text)
    }

    fn text<'b>(&self, text: &'b Text) -> Option<BlockJson<'b>> {
        text_json(self.0, text)
    }

    fn reasoning(reasoning: &Reasoning) -> BlockJson<'_> {
        match &reasoning.encrypted {
            Some(data) => BlockJson::RedactedThinking { data },
            None => BlockJson::Thinking {
                thinking: &reasoning.text,
                signature: reasoning.signature.as_deref().unwrap_or_default(),
            },
        }
    }

    /// Reasoning without a signature is sent to nobody.
    fn is_sendable(block: &Block) -> bool {
        !matches!(block, Block::Reasoning(r) if r.signature.is_none() && r.encrypted.is_none())
    }

    fn call<'b>(id: Cow<'b, str>, call: &'b ToolCall) -> BlockJson<'b> {
        BlockJson::ToolUse { id, name: &call.name, input: Input::new(&call.arguments) }
    }

    fn id(id: &str) -> Cow<'_, str> {
        plain_id(id)
    }
}

impl<'a> Words<'a> for BlockJson<'a> {
    fn words(&mut self) -> Option<&mut Cow<'a, str>> {
        match self {
            BlockJson::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

impl Messages<'_> {
    fn spoken<'b>(&self, parts: &'b [Part]) -> impl Iterator<Item = BlockJson<'b>> {
        parts.iter().filter_map(|part| part_json(self.0, part))
    }

    fn result<'b>(&self, result: &'b ToolMessage, keeps_ids: bool) -> BlockJson<'b> {
        if let Some(own) = own(self.0, result.raw()) {
            return BlockJson::Raw(own);
        }
        let content = match result.parts() {
            [Part::Text(text)] if text.raw.is_none() && text.cache.is_none() && !text.text.trim().is_empty() => {
                Some(Content::Text(&text.text))
            }
            parts => {
                Some(self.spoken(parts).collect()).filter(|blocks: &Vec<_>| !blocks.is_empty()).map(Content::Blocks)
            }
        };
        // The API takes no failure without a word.
        let content = content.or(result.is_error().then_some(Content::Text(EMPTY)));
        let id = result.call_id();
        let tool_use_id = if keeps_ids { Cow::Borrowed(id) } else { plain_id(id) };
        BlockJson::ToolResult { tool_use_id, content, is_error: result.is_error() }
    }
}

fn instructions(message: &SystemMessage) -> BlockJson<'static> {
    let cache_control = two_roles::mark(message).map(CacheControl::from);
    BlockJson::Text { text: two_roles::instructions(message).into(), cache_control }
}
