//! Writing what the model said, as far as possible in the words of its provider.

use std::{borrow::Cow, mem::take};

use agent_core::{
    AssistantMessage, Block, ToolCall,
    message::{Origin, ServerCall},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    GeminiCodec,
    fold::Fold,
    parts::{CallJson, ContentJson, PartJson},
    profile::GeminiGeneration,
    read::PartSaid,
    wrapper::inner,
};
use crate::wire::json::{Object, knows, own, write as write_json};

/// Tells the API that a call was not made by it, and so cannot be signed.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// Writes `message`, with a comma after it:
///
/// * as its provider sent it, if this is the provider and nobody edited it. What came as several contents is a list of them;
/// * if it was edited, as its blocks say, each in its provider's words if these still say the same;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back. A
///   message of which then nothing is left is left out.
pub(super) fn write(codec: &GeminiCodec, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(&codec.origin, raw));
    match own {
        Some(raw) if !message.is_edited() => out.extend_from_slice(inner(raw.json()).unwrap_or(raw.json()).as_bytes()),
        _ => {
            let is_signed = own.is_some() || codec.generation != GeminiGeneration::Gemini3;
            let parts = Turn { origin: &codec.origin, is_own: own.is_some(), is_signed }.parts(message.blocks());
            if parts.is_empty() {
                return;
            }
            write_json(&ContentJson { rest: None, role: Some("model"), parts }, out);
        }
    }
    out.push(b',');
}

/// The content that these blocks of the provider's make, with what else it holds.
pub(super) fn content(origin: &Origin, blocks: &[Block], rest: &Map<String, Value>) -> Box<RawValue> {
    let role = Some("model").filter(|_| !rest.contains_key("role"));
    let parts = Turn { origin, is_own: true, is_signed: true }.parts(blocks);
    to_raw_value(&ContentJson { rest: Some(rest), role, parts }).expect("its keys are texts")
}

/// The provider's id of a call; none if it gave none, and the call was named here.
pub(super) fn given_id<'a>(origin: &Origin, call: &'a ToolCall) -> Option<&'a str> {
    let said = PartSaid::read(own(origin, call.raw.as_ref())?)?.call?.id?;
    (*said.0 == *call.id).then_some(&*call.id)
}

struct Turn<'t> {
    origin: &'t Origin,
    /// The message is the provider's.
    is_own: bool,
    /// Its calls need no word that they cannot be signed.
    is_signed: bool,
}

impl Turn<'_> {
    fn parts<'a>(&self, blocks: &'a [Block]) -> Vec<PartJson<'a>> {
        let mut parts = Vec::new();
        // Only the first call of a message must be signed.
        let mut is_unsigned = !self.is_signed;
        for block in blocks {
            let must_be_signed = matches!(block, Block::ToolCall(_)) && take(&mut is_unsigned);
            match (self.own(block), block) {
                (Some(own), _) => parts.extend(items(own).into_iter().map(PartJson::Raw)),
                (None, Block::Text(text)) if !text.text.is_empty() => parts.push(PartJson::text(&*text.text, false)),
                (None, Block::Reasoning(thought)) if self.is_own && !thought.text.is_empty() => {
                    let thought_signature = thought.signature.as_deref().map(Cow::Borrowed);
                    parts.push(PartJson::Text { text: thought.text.as_str().into(), thought: true, thought_signature });
                }
                (None, Block::ToolCall(call)) => parts.push(self.call(call, must_be_signed)),
                (None, Block::Image(media)) => parts.push(PartJson::image(media)),
                (None, Block::Document(media)) => parts.push(PartJson::document(media)),
                _ => {}
            }
        }
        parts
    }

    /// A call that was edited keeps its signature: a call without one is refused.
    fn call<'a>(&self, call: &'a ToolCall, must_be_signed: bool) -> PartJson<'a> {
        let signature = own(self.origin, call.raw.as_ref()).and_then(|own| PartSaid::read(own)?.signature);
        let args = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        PartJson::Call {
            function_call: CallJson {
                id: given_id(self.origin, call),
                name: &call.name,
                args: Object::of(args, "arguments"),
            },
            thought_signature: signature.map(|s| s.0).or(must_be_signed.then_some(NOT_SIGNED.into())),
        }
    }

    /// The provider's own JSON of a block, if it still says the same: the block may have been edited.
    fn own<'a>(&self, block: &'a Block) -> Option<&'a RawValue> {
        let raw = match block {
            Block::Text(text) => text.raw.as_ref(),
            Block::Reasoning(reasoning) => reasoning.raw.as_ref(),
            Block::ToolCall(call) => call.raw.as_ref(),
            Block::Image(media) | Block::Document(media) => media.raw.as_ref(),
            Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => return own(self.origin, Some(raw)),
            _ => None,
        };
        own(self.origin, raw).filter(|own| {
            let (mut fold, mut nobody) = (Fold::new(self.origin.clone(), false), Vec::new());
            items(own).into_iter().for_each(|part| fold.push(part, "", &mut nobody));
            matches!(&*fold.finish(&Map::new(), &mut nobody), [was] if says_the_same(was, block))
        })
    }
}

fn says_the_same(was: &Block, is: &Block) -> bool {
    match (was, is) {
        (Block::Text(was), Block::Text(is)) => was.text == is.text,
        (Block::Reasoning(was), Block::Reasoning(is)) => was.text == is.text,
        (Block::ToolCall(was), Block::ToolCall(is)) => (&was.name, &was.arguments) == (&is.name, &is.arguments),
        (Block::Image(was) | Block::Document(was), Block::Image(is) | Block::Document(is)) => was.source == is.source,
        _ => false,
    }
}

/// The parts in a block's JSON, which is one or a list of them.
fn items(own: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(own.get()).unwrap_or_else(|_| vec![own])
}
