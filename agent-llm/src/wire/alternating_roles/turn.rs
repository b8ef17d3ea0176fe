//! Encoding of the model's turns, as far as possible with the provider's own JSON.

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Origin, Raw, ServerCall},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{AlternatingRoles, nothing, read_turn};
use crate::wire::{
    content::same_call,
    json::{knows, own, write as write_json},
};

/// An encoded message.
#[derive(Serialize)]
pub(super) struct Said<B> {
    pub(super) role: &'static str,
    pub(super) content: Vec<B>,
}

/// Writes `message`:
///
/// * unchanged, if it is this provider's and unedited;
/// * if it was edited, block by block, each with the provider's own JSON unless that block was
///   edited;
/// * if it is another provider's or nobody's, from its blocks, without the reasoning, which only
///   its author accepts.
pub(super) fn write<W: AlternatingRoles>(origin: &Origin, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(origin, raw));
    match own {
        Some(raw) if !message.is_edited() && message.blocks().iter().all(W::is_sendable) => {
            // Consecutive turns form a list.
            let json = raw.json().trim();
            let json = json.strip_prefix('[').and_then(|json| json.strip_suffix(']')).unwrap_or(json);
            out.extend_from_slice(json.as_bytes());
        }
        _ => {
            let said = own.and_then(|raw| read_turn::<W>(raw.json(), raw.origin()).ok()).unwrap_or_default();
            let content = Turn { origin, is_own: own.is_some(), said }.content::<W>(message.blocks());
            write_json(&Said { role: "assistant", content }, out);
        }
    }
}

struct Turn<'t> {
    origin: &'t Origin,
    is_own: bool,
    /// Blocks of the provider's own JSON, before any edit.
    said: Vec<Block>,
}

impl Turn<'_> {
    fn content<'a, W: AlternatingRoles>(&self, blocks: &'a [Block]) -> Vec<W::Block<'a>> {
        let mut last = None;
        let said = blocks.iter().filter_map(|block| {
            let said = self.block::<W>(block)?;
            last = Some(block);
            Some(said)
        });
        let mut written: Vec<_> = said.collect();
        // The API rejects trailing white space in a turn that it is to continue.
        if let (Some(Block::Text(text)), Some(last), false) = (last, written.last_mut(), self.is_own)
            && own(self.origin, text.raw.as_ref()).is_none()
        {
            *last = W::plain(text.text.trim_end().into(), text.cache);
        }
        if written.is_empty() {
            written.push(nothing::<W>());
        }
        written
    }

    fn block<'a, W: AlternatingRoles>(&self, block: &'a Block) -> Option<W::Block<'a>> {
        let own = |raw: Option<&'a Raw>| own(self.origin, raw);
        match block {
            // White space from the API itself is accepted.
            Block::Text(text) if text.raw.is_none() && self.said.contains(block) => {
                Some(W::plain(text.text.as_str().into(), None))
            }
            Block::Text(text) => W::text(self.origin, text),
            // Reasoning is only sent unchanged.
            Block::Reasoning(reasoning) => (W::is_sendable(block) && self.said.contains(block))
                .then(|| own(reasoning.raw.as_ref()).map_or_else(|| W::reasoning(reasoning), W::own)),
            Block::ToolCall(call) => Some(match own(call.raw.as_ref()).filter(|own| self.still_says::<W>(own, call)) {
                Some(own) => W::own(own),
                None => W::call(call),
            }),
            Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => own(Some(raw)).map(W::own),
            // The API accepts no media from the model: a placeholder is sent.
            Block::Image(_) => Some(W::plain("[image]".into(), None)),
            Block::Document(_) => Some(W::plain("[document]".into(), None)),
            _ => None,
        }
    }

    /// Returns true if the provider's JSON still matches the call, which may have been edited.
    fn still_says<W: AlternatingRoles>(&self, own: &RawValue, call: &ToolCall) -> bool {
        matches!(W::read(own, self.origin), Block::ToolCall(was) if same_call(&was, call))
    }
}
