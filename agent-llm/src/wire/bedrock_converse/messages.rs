//! Encoding and decoding of messages.

use std::borrow::Cow;

use agent_core::{
    Block, Part, Text, ToolCall,
    message::{Cache, Origin, Reasoning},
};
use serde_json::value::RawValue;

use super::{
    parts::{BlockJson, CallJson, ResultJson, Thoughts, parts_json, text_json},
    read,
};
#[cfg(feature = "requests")]
use crate::wire::alternating_roles::reading::Answer;
use crate::wire::{
    alternating_roles::AlternatingRoles,
    content::{EMPTY, Input},
};

/// The wire, as a type parameter.
#[derive(Debug)]
pub(super) struct Converse;

impl AlternatingRoles for Converse {
    type Block<'a> = BlockJson<'a>;

    fn read(json: &RawValue, origin: &Origin) -> Block {
        read::block(json, origin)
    }

    fn own(json: &RawValue) -> BlockJson<'_> {
        BlockJson::Raw(json)
    }

    fn plain(text: Cow<'_, str>, _: Option<Cache>) -> BlockJson<'_> {
        BlockJson::Text(text)
    }

    fn mark<'a>(cache: Cache) -> Option<BlockJson<'a>> {
        Some(BlockJson::CachePoint(cache.into()))
    }

    fn text<'a>(origin: &Origin, text: &'a Text) -> Option<BlockJson<'a>> {
        text_json(origin, text)
    }

    fn parts<'a>(origin: &Origin, at: usize, parts: &'a [Part]) -> Vec<BlockJson<'a>> {
        parts_json(origin, at, parts)
    }

    fn reasoning(reasoning: &Reasoning) -> BlockJson<'_> {
        BlockJson::ReasoningContent(match &reasoning.encrypted {
            Some(data) => Thoughts::RedactedContent(data),
            None => Thoughts::ReasoningText { text: &reasoning.text, signature: reasoning.signature.as_deref() },
        })
    }

    fn call(call: &ToolCall) -> BlockJson<'_> {
        BlockJson::ToolUse(CallJson { tool_use_id: &call.id, name: &call.name, input: Input::new(&call.arguments) })
    }

    /// Encodes the result, followed by the last cache point of its parts, which is not allowed
    /// inside.
    fn result<'a>(tool_use_id: &'a str, content: Vec<BlockJson<'a>>, is_error: bool) -> Vec<BlockJson<'a>> {
        let is_mark = |block: &BlockJson<'_>| matches!(block, BlockJson::CachePoint(_));
        let (mut marks, mut content): (Vec<_>, Vec<_>) = content.into_iter().partition(is_mark);
        if content.is_empty() {
            content.push(BlockJson::Text(EMPTY.into()));
        }
        let result = ResultJson { tool_use_id, content, status: is_error.then_some("error") };
        std::iter::once(BlockJson::ToolResult(result)).chain(marks.pop()).collect()
    }

    #[cfg(feature = "requests")]
    fn read_parts(content: &[&RawValue], origin: &Origin) -> Vec<Part> {
        read::parts(content, origin)
    }

    #[cfg(feature = "requests")]
    fn read_result(json: &RawValue, origin: &Origin) -> Option<Answer> {
        super::request::result(json, origin)
    }
}
