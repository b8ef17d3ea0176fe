//! Writing the conversation.

use std::borrow::Cow;

use agent_core::{AssistantMessage, Message, Part, SystemMessage, ToolMessage, message::Origin};

use super::{
    assistant,
    parts::{BlockJson, Content, EMPTY, part_json, plain},
};
use crate::wire::{
    cache_control::CacheControl,
    ids::plain_id,
    json::own,
    two_roles::{self, TwoRoles},
};

/// How messages are written to this provider.
pub(super) struct Messages<'a>(pub(super) &'a Origin);

impl TwoRoles for Messages<'_> {
    type Block<'b> = BlockJson<'b>;

    fn origin(&self) -> &Origin {
        self.0
    }

    fn assistant(&self, message: &AssistantMessage, out: &mut Vec<u8>) {
        assistant::write(self.0, message, out);
    }

    fn blocks<'b>(&self, _: usize, message: &'b Message, keeps_ids: bool) -> Vec<BlockJson<'b>> {
        match message {
            Message::Tool(result) => vec![self.result(result, keeps_ids)],
            Message::User(message) => self.spoken(message.parts()).collect(),
            Message::System(message) => vec![instructions(message)],
            Message::Assistant(_) => Vec::new(),
        }
    }

    fn nothing() -> BlockJson<'static> {
        plain(EMPTY)
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
    let cache = message.parts().iter().rev().find_map(|part| match part {
        Part::Text(text) => text.cache,
        _ => None,
    });
    BlockJson::Text { text: two_roles::instructions(message).into(), cache_control: cache.map(CacheControl::from) }
}
