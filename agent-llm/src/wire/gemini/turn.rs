//! Encoding of the model's turns, as far as possible with the provider's own JSON.

use std::{borrow::Cow, mem::take};

use agent_core::{
    AssistantMessage, Block, Text, ToolCall,
    message::{Origin, Reasoning, ServerCall},
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{
    GeminiCodec,
    parts::{CallJson, ContentJson, PartJson, items},
    profile::GeminiGeneration,
    read::PartSaid,
    wrapper::inner,
};
use crate::wire::json::{Object, knows, own, write as write_json};

/// Signature that tells the API that the call was made by another model.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// Encodes `message`, followed by a comma:
///
/// * unchanged, if it is this provider's and unedited. A turn of several contents is a list of
///   them;
/// * if it was edited, from its blocks, each with the provider's own JSON if it still matches;
/// * if it is another provider's or nobody's, from its blocks, without the reasoning, which only
///   its author accepts. A message that becomes empty is left out.
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

/// Builds the content of these blocks of the provider, with its other fields.
pub(super) fn content(origin: &Origin, blocks: &[Block], rest: &Map<String, Value>) -> Box<RawValue> {
    let role = Some("model").filter(|_| !rest.contains_key("role"));
    let parts = Turn { origin, is_own: true, is_signed: true }.parts(blocks);
    to_raw_value(&ContentJson { rest: Some(rest), role, parts }).expect("its keys are texts")
}

/// Returns the provider's id of a call; `None` if the id was generated here.
pub(super) fn given_id<'a>(origin: &Origin, call: &'a ToolCall) -> Option<&'a str> {
    let said = PartSaid::read(own(origin, call.raw.as_ref())?)?.call?.id?;
    (*said.0 == *call.id).then_some(&*call.id)
}

struct Turn<'t> {
    origin: &'t Origin,
    /// True if the message is this provider's.
    is_own: bool,
    /// True if its calls need no placeholder signature.
    is_signed: bool,
}

impl Turn<'_> {
    fn parts<'a>(&self, blocks: &'a [Block]) -> Vec<PartJson<'a>> {
        let mut parts = Vec::new();
        // Only the first call of a message must be signed.
        let mut is_unsigned = !self.is_signed;
        for block in blocks {
            match block {
                Block::Text(Text { text, raw, .. }) => {
                    parts
                        .extend(PartJson::words(self.origin, text, raw.as_ref(), |words| PartJson::text(words, false)));
                }
                Block::Reasoning(thought) => parts.extend(self.thought(thought)),
                Block::ToolCall(call) => parts.push(self.call(call, take(&mut is_unsigned))),
                Block::Image(media) => parts.push(PartJson::image(self.origin, media)),
                Block::Document(media) => parts.push(PartJson::document(self.origin, media)),
                Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => {
                    parts.extend(own(self.origin, Some(raw)).into_iter().flat_map(items).map(PartJson::Raw));
                }
                _ => {}
            }
        }
        parts
    }

    fn thought<'a>(&self, thought: &'a Reasoning) -> Vec<PartJson<'a>> {
        if !self.is_own && own(self.origin, thought.raw.as_ref()).is_none() {
            return Vec::new();
        }
        let thought_signature = thought.signature.as_deref().map(Cow::Borrowed);
        let made = |words: &'a str| PartJson::Text { text: words.into(), thought: true, thought_signature };
        PartJson::words(self.origin, &thought.text, thought.raw.as_ref(), made)
    }

    /// Encodes the call with the provider's own JSON, if it still matches. An edited call keeps its
    /// signature: without one it is rejected.
    fn call<'a>(&self, call: &'a ToolCall, must_be_signed: bool) -> PartJson<'a> {
        let own = own(self.origin, call.raw.as_ref());
        let said = own.and_then(PartSaid::read).unwrap_or_default();
        if let (Some(own), Some(was)) = (own, &said.call)
            && (was.name(), was.arguments()) == (&call.name, call.arguments.clone())
        {
            return PartJson::Raw(own);
        }
        let args = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        PartJson::Call {
            function_call: CallJson {
                id: given_id(self.origin, call),
                name: &call.name,
                args: Object::of(args, "arguments"),
            },
            thought_signature: said.signature.map(|s| s.0).or(must_be_signed.then_some(NOT_SIGNED.into())),
        }
    }
}
