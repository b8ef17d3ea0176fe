//! Writing the conversation.

use std::borrow::Cow;

use agent_core::{
    Block, Message, Text, ToolCall, ToolMessage,
    message::{Origin, Reasoning},
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{
    parts::{BlockJson, CallJson, ResultJson, Thoughts, nothing, parts_json, plain, text_json},
    read,
};
use crate::wire::{
    content::Input,
    ids::plain_id,
    json::own,
    two_roles::{TwoRoles, Words, instructions, mark},
};

/// How messages are written to this provider.
pub(super) struct Messages<'a>(pub(super) &'a Origin);

impl TwoRoles for Messages<'_> {
    type Block<'b> = BlockJson<'b>;

    fn origin(&self) -> &Origin {
        self.0
    }

    fn blocks<'b>(&self, at: usize, message: &'b Message, keeps_ids: bool) -> Vec<BlockJson<'b>> {
        match message {
            Message::Tool(result) => self.result(at, result, keeps_ids),
            Message::User(message) => parts_json(self.0, at, message.parts()),
            Message::System(message) => {
                let mark = mark(message).map(|cache| BlockJson::CachePoint(cache.into()));
                std::iter::once(plain(instructions(message))).chain(mark).collect()
            }
            Message::Assistant(_) => Vec::new(),
        }
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
        BlockJson::ReasoningContent(match &reasoning.encrypted {
            Some(data) => Thoughts::RedactedContent(data),
            None => Thoughts::ReasoningText { text: &reasoning.text, signature: reasoning.signature.as_deref() },
        })
    }

    fn call<'b>(id: Cow<'b, str>, call: &'b ToolCall) -> BlockJson<'b> {
        BlockJson::ToolUse(CallJson { tool_use_id: id, name: &call.name, input: Input::new(&call.arguments) })
    }

    /// Short, and of letters, digits, `_` and `-`.
    fn id(id: &str) -> Cow<'_, str> {
        /// More is refused.
        const MOST: usize = 64;
        match plain_id(id) {
            id if id.len() <= MOST => id,
            long => Sha256::digest(&*long).iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

impl<'a> Words<'a> for BlockJson<'a> {
    fn words(&mut self) -> Option<&mut Cow<'a, str>> {
        match self {
            BlockJson::Text(text) => Some(text),
            _ => None,
        }
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
        let tool_use_id = if keeps_ids { Cow::Borrowed(call) } else { Self::id(call) };
        let status = result.is_error().then_some("error");
        let result = BlockJson::ToolResult(ResultJson { tool_use_id, content, status });
        std::iter::once(result).chain(marks.pop()).collect()
    }
}
