//! Writing what the model said, as far as possible in the words of its provider.

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Raw, Reasoning, ServerCall},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{TwoRoles, Words};
use crate::wire::json::{knows, own, write as write_json};

#[derive(Serialize)]
struct Said<B> {
    role: &'static str,
    content: Vec<B>,
}

/// Writes `message`:
///
/// * as its provider sent it, if this is the provider and nobody edited it;
/// * if it was edited, block by block, each as its provider sent it unless it is one of those that were edited;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back.
pub(super) fn write<W: TwoRoles>(wire: &W, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(wire.origin(), raw));
    match own {
        Some(raw) if !message.is_edited() && message.blocks().iter().all(W::is_sendable) => {
            // Turns that follow each other stand in a list.
            let json = raw.json().trim();
            let json = json.strip_prefix('[').and_then(|json| json.strip_suffix(']')).unwrap_or(json);
            out.extend_from_slice(json.as_bytes());
        }
        _ => write_json(&Said { role: "assistant", content: Turn::new(wire, message, own).blocks() }, out),
    }
}

struct Turn<'a, W> {
    wire: &'a W,
    message: &'a AssistantMessage,
    is_own: bool,
    /// What the provider said, before it was edited.
    said: Vec<Block>,
}

impl<'a, W: TwoRoles> Turn<'a, W> {
    fn new(wire: &'a W, message: &'a AssistantMessage, own: Option<&Raw>) -> Self {
        let said = own.and_then(|raw| W::read_turn(raw.json(), raw.origin()).ok()).unwrap_or_default();
        Self { wire, message, is_own: own.is_some(), said }
    }

    fn blocks(&self) -> Vec<W::Block<'a>> {
        let mut blocks: Vec<_> = self.message.blocks().iter().filter_map(|block| self.block(block)).collect();
        if let Some(text) = blocks.last_mut().filter(|_| !self.is_own).and_then(Words::words) {
            // The API takes no blanks at the end of a turn that it is to go on with.
            *text = match std::mem::take(text) {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim_end()),
                Cow::Owned(text) => Cow::Owned(text.trim_end().to_owned()),
            };
        }
        if blocks.is_empty() {
            blocks.push(W::nothing());
        }
        blocks
    }

    fn block(&self, block: &'a Block) -> Option<W::Block<'a>> {
        match block {
            // Its own blanks the API takes back.
            Block::Text(text) if text.raw.is_none() && self.said.contains(block) => Some(W::plain(&text.text)),
            Block::Text(text) => self.wire.text(text),
            Block::Reasoning(reasoning) => self.reasoning(block, reasoning),
            Block::ToolCall(call) => Some(self.call(call)),
            Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => self.own(Some(raw)).map(W::own),
            // The API takes none of the model's own: that there was one is said.
            Block::Image(_) => Some(W::plain("[image]")),
            Block::Document(_) => Some(W::plain("[document]")),
            _ => None,
        }
    }

    fn own(&self, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
        own(self.wire.origin(), raw)
    }

    /// Only as the provider said it.
    fn reasoning(&self, block: &'a Block, reasoning: &'a Reasoning) -> Option<W::Block<'a>> {
        let is_known = W::is_sendable(block) && self.said.contains(block);
        is_known.then(|| self.own(reasoning.raw.as_ref()).map_or_else(|| W::reasoning(reasoning), W::own))
    }

    fn call(&self, call: &'a ToolCall) -> W::Block<'a> {
        if let Some(own) = self.own(call.raw.as_ref()).filter(|own| self.still_says(own, call)) {
            return W::own(own);
        }
        let id = if self.is_own { Cow::Borrowed(&*call.id) } else { W::id(&call.id) };
        W::call(id, call)
    }

    /// True if the provider's JSON is still of this call: it may have been edited.
    fn still_says(&self, own: &RawValue, call: &ToolCall) -> bool {
        matches!(W::read(own.get(), self.wire.origin()), Block::ToolCall(was)
            if (&was.id, &was.name, &was.arguments) == (&call.id, &call.name, &call.arguments))
    }
}
