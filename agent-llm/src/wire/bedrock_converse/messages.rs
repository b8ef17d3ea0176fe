//! Writing the conversation.

use std::borrow::Cow;

use agent_core::{AssistantMessage, Message, Part, ToolMessage, message::Origin};
use sha2::{Digest, Sha256};

use super::{
    assistant,
    parts::{BlockJson, ResultJson, nothing, parts_json, plain},
};
use crate::wire::{
    ids::plain_id,
    json::own,
    two_roles::{TwoRoles, instructions},
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

    fn blocks<'b>(&self, at: usize, message: &'b Message, keeps_ids: bool) -> Vec<BlockJson<'b>> {
        match message {
            Message::Tool(result) => self.result(at, result, keeps_ids),
            Message::User(message) => parts_json(self.0, at, message.parts()),
            Message::System(message) => {
                let cache = message.parts().iter().rev().find_map(|part| match part {
                    Part::Text(text) => text.cache,
                    _ => None,
                });
                let mark = cache.map(|cache| BlockJson::CachePoint(cache.into()));
                std::iter::once(plain(instructions(message))).chain(mark).collect()
            }
            Message::Assistant(_) => Vec::new(),
        }
    }

    fn nothing() -> BlockJson<'static> {
        nothing()
    }
}

impl Messages<'_> {
    /// The result, and the cache points of its parts behind it: there is no place for them within.
    fn result<'b>(&self, at: usize, result: &'b ToolMessage, keeps_ids: bool) -> Vec<BlockJson<'b>> {
        if let Some(own) = own(self.0, result.raw()) {
            return vec![BlockJson::Raw(own)];
        }
        let is_mark = |block: &BlockJson<'_>| matches!(block, BlockJson::CachePoint(_));
        let (mut marks, mut content): (Vec<_>, Vec<_>) =
            parts_json(self.0, at, result.parts()).into_iter().partition(is_mark);
        if content.is_empty() {
            content.push(nothing());
        }
        let call = result.call_id();
        let tool_use_id = if keeps_ids { Cow::Borrowed(call) } else { id(call) };
        let status = result.is_error().then_some("error");
        let result = BlockJson::ToolResult(ResultJson { tool_use_id, content, status });
        std::iter::once(result).chain(marks.pop()).collect()
    }
}

/// An id as the API takes it: short, and of letters, digits, `_` and `-`.
pub(super) fn id(id: &str) -> Cow<'_, str> {
    /// More is refused.
    const MOST: usize = 64;
    match plain_id(id) {
        id if id.len() <= MOST => id,
        long => Sha256::digest(&*long).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
