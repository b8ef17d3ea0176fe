//! Encoding and decoding of messages.

use std::borrow::Cow;

use agent_core::{
    Block, Part, Text, ToolCall,
    message::{Cache, Origin, Reasoning},
};
use serde_json::value::RawValue;

use super::{
    parts::{BlockJson, Content, part_json, text_json},
    read,
};
#[cfg(feature = "requests")]
use crate::wire::alternating_roles::reading::Answer;
use crate::wire::{alternating_roles::AlternatingRoles, cache_control::CacheControl, content::Input};

/// The wire, as a type parameter.
#[derive(Debug)]
pub(super) struct Messages;

impl AlternatingRoles for Messages {
    type Block<'a> = BlockJson<'a>;

    fn read(json: &RawValue, origin: &Origin) -> Block {
        read::block(json, origin)
    }

    fn own(json: &RawValue) -> BlockJson<'_> {
        BlockJson::Raw(json)
    }

    fn plain(text: Cow<'_, str>, cache: Option<Cache>) -> BlockJson<'_> {
        BlockJson::Text { text, cache_control: cache.map(CacheControl::from) }
    }

    fn text<'a>(origin: &Origin, text: &'a Text) -> Option<BlockJson<'a>> {
        text_json(origin, text)
    }

    fn parts<'a>(origin: &Origin, _: usize, parts: &'a [Part]) -> Vec<BlockJson<'a>> {
        parts.iter().filter_map(|part| part_json(origin, part)).collect()
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

    /// Reasoning without a signature is never sent.
    fn is_sendable(block: &Block) -> bool {
        !matches!(block, Block::Reasoning(r) if r.signature.is_none() && r.encrypted.is_none())
    }

    fn call(call: &ToolCall) -> BlockJson<'_> {
        BlockJson::ToolUse { id: &call.id, name: &call.name, input: Input::new(&call.arguments) }
    }

    fn result<'a>(tool_use_id: &'a str, content: Vec<BlockJson<'a>>, is_error: bool) -> Vec<BlockJson<'a>> {
        vec![BlockJson::ToolResult { tool_use_id, content: Content::of(content), is_error }]
    }

    #[cfg(feature = "requests")]
    fn read_parts(content: &[&RawValue], origin: &Origin) -> Vec<Part> {
        content.iter().map(|json| read::part(json, origin)).collect()
    }

    #[cfg(feature = "requests")]
    fn read_result(json: &RawValue, origin: &Origin) -> Option<Answer> {
        super::request::result(json, origin)
    }
}
