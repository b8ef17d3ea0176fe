//! Writing what the model said, as far as possible in the words of its provider.

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Origin, Raw, ServerCall},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{TwoRoles, id, nothing, read_turn};
use crate::wire::{
    content::same_call,
    json::{knows, own, write as write_json},
};

/// A message.
#[derive(Serialize)]
pub(super) struct Said<B> {
    pub(super) role: &'static str,
    pub(super) content: Vec<B>,
}

/// Writes `message`:
///
/// * as its provider sent it, if this is the provider and nobody edited it;
/// * if it was edited, block by block, each as its provider sent it unless it is one of those that were edited;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back.
pub(super) fn write<W: TwoRoles>(origin: &Origin, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(origin, raw));
    match own {
        Some(raw) if !message.is_edited() && message.blocks().iter().all(W::is_sendable) => {
            // Turns that follow each other stand in a list.
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
    /// What the provider said, before it was edited.
    said: Vec<Block>,
}

impl Turn<'_> {
    fn content<'a, W: TwoRoles>(&self, blocks: &'a [Block]) -> Vec<W::Block<'a>> {
        let mut last = None;
        let said = blocks.iter().filter_map(|block| {
            let said = self.block::<W>(block)?;
            last = Some(block);
            Some(said)
        });
        let mut written: Vec<_> = said.collect();
        // The API takes no blanks at the end of a turn that it is to go on with.
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

    fn block<'a, W: TwoRoles>(&self, block: &'a Block) -> Option<W::Block<'a>> {
        let own = |raw: Option<&'a Raw>| own(self.origin, raw);
        match block {
            // Its own blanks the API takes back.
            Block::Text(text) if text.raw.is_none() && self.said.contains(block) => {
                Some(W::plain(text.text.as_str().into(), None))
            }
            Block::Text(text) => W::text(self.origin, text),
            // Only as the provider said it.
            Block::Reasoning(reasoning) => (W::is_sendable(block) && self.said.contains(block))
                .then(|| own(reasoning.raw.as_ref()).map_or_else(|| W::reasoning(reasoning), W::own)),
            Block::ToolCall(call) => Some(match own(call.raw.as_ref()).filter(|own| self.still_says::<W>(own, call)) {
                Some(own) => W::own(own),
                None => W::call(if self.is_own { call.id.as_ref().into() } else { id(&call.id) }, call),
            }),
            Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => own(Some(raw)).map(W::own),
            // The API takes none of the model's own: that there was one is said.
            Block::Image(_) => Some(W::plain("[image]".into(), None)),
            Block::Document(_) => Some(W::plain("[document]".into(), None)),
            _ => None,
        }
    }

    /// True if the provider's JSON is still of this call: it may have been edited.
    fn still_says<W: TwoRoles>(&self, own: &RawValue, call: &ToolCall) -> bool {
        matches!(W::read(own, self.origin), Block::ToolCall(was) if same_call(&was, call))
    }
}
