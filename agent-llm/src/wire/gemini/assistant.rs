//! Writing what the model said, as far as possible in the words of its provider.

use std::borrow::Cow;

use agent_core::{
    AssistantMessage, Block, Media, Text, ToolCall,
    message::{Reasoning, ServerCall},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    fold::Fold,
    manner::Manner,
    part::PartSaid,
    profile::GeminiGeneration,
    rest::Rest,
    speak::{CallJson, PartJson},
    wrapper::inner,
};
use crate::wire::json::{Object, write as write_json};

/// Tells the API that a call was not made by it, and so cannot be signed.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
struct ContentJson<'a> {
    role: &'static str,
    parts: Vec<PartJson<'a>>,
}

/// Writes `message`, with a comma after it:
///
/// * as its provider sent it, if this is the provider and nobody edited it. What came as several contents is a list of them;
/// * if it was edited, as its blocks say, each in its provider's words if these still say the same;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back. A
///   message of which then nothing is left is left out.
pub(super) fn write(manner: &Manner, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| manner.knows(raw));
    match own {
        Some(raw) if !message.is_edited() => out.extend_from_slice(inner(raw.json()).unwrap_or(raw.json()).as_bytes()),
        _ => {
            let parts = Projection { manner, is_own: own.is_some() }.parts(message.blocks());
            if parts.is_empty() {
                return;
            }
            write_json(&ContentJson { role: "model", parts }, out);
        }
    }
    out.push(b',');
}

/// The content that these blocks of the provider's make, with what else it holds.
pub(super) fn content(manner: &Manner, blocks: &[Block], rest: &Rest) -> String {
    let mut out = b"{".to_vec();
    for (name, json) in [("role", "\"model\"")].into_iter().filter(|_| rest.get("role").is_none()).chain(rest.iter()) {
        write_json(&name, &mut out);
        out.push(b':');
        out.extend_from_slice(json.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(b"\"parts\":");
    write_json(&Projection { manner, is_own: true }.parts(blocks), &mut out);
    out.push(b'}');
    String::from_utf8(out).expect("JSON is text")
}

/// The provider's id of a call; none if it gave none, and the call was named here.
pub(super) fn given_id<'a>(manner: &Manner, call: &'a ToolCall) -> Option<&'a str> {
    let own = PartSaid::read(manner.own(call.raw.as_ref())?.get())?.call?.id?;
    (*own.0 == *call.id).then_some(&*call.id)
}

struct Projection<'m> {
    manner: &'m Manner,
    /// The message is the provider's.
    is_own: bool,
}

impl Projection<'_> {
    fn parts<'a>(&self, blocks: &'a [Block]) -> Vec<PartJson<'a>> {
        let mut parts = Vec::new();
        // Only the first call of a message must be signed.
        let mut unsigned = !self.is_own && self.manner.generation == GeminiGeneration::Gemini3;
        for block in blocks {
            match block {
                Block::Text(text) => self.text(text, &mut parts),
                Block::Reasoning(reasoning) => self.reasoning(reasoning, &mut parts),
                Block::ToolCall(call) => parts.push(self.call(call, std::mem::take(&mut unsigned))),
                Block::Image(media) => parts.push(self.media(media).unwrap_or(PartJson::image(media))),
                Block::Document(media) => parts.push(self.media(media).unwrap_or(PartJson::document(media))),
                Block::Server(ServerCall { raw, .. }) | Block::Other(raw) => {
                    self.manner.own(Some(raw)).into_iter().for_each(|own| push_own(own, &mut parts));
                }
                _ => {}
            }
        }
        parts
    }

    fn text<'a>(&self, text: &'a Text, parts: &mut Vec<PartJson<'a>>) {
        let says = |was: &Block| matches!(was, Block::Text(was) if was.text == text.text);
        match self.manner.own(text.raw.as_ref()).filter(|own| self.is_of(own, says)) {
            Some(own) => push_own(own, parts),
            None if text.text.is_empty() => {}
            None => parts.push(PartJson::text(&text.text, false)),
        }
    }

    fn reasoning<'a>(&self, reasoning: &'a Reasoning, parts: &mut Vec<PartJson<'a>>) {
        let says = |was: &Block| matches!(was, Block::Reasoning(was) if was.text == reasoning.text);
        match self.manner.own(reasoning.raw.as_ref()).filter(|own| self.is_of(own, says)) {
            Some(own) => push_own(own, parts),
            None if !self.is_own || reasoning.text.is_empty() => {}
            None => parts.push(PartJson::Text {
                text: &reasoning.text,
                thought: true,
                thought_signature: reasoning.signature.as_deref().map(Cow::Borrowed),
            }),
        }
    }

    /// A call that was edited keeps its signature: a call without one is refused.
    fn call<'a>(&self, call: &'a ToolCall, must_be_signed: bool) -> PartJson<'a> {
        let own = self.manner.own(call.raw.as_ref());
        let said = (&call.name, &call.arguments);
        let says = |was: &Block| matches!(was, Block::ToolCall(was) if (&was.name, &was.arguments) == said);
        if let Some(own) = own.filter(|own| self.is_of(own, says)) {
            return PartJson::Raw(own);
        }
        let signature = own.and_then(|own| PartSaid::read(own.get())?.signature);
        let args = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        PartJson::Call {
            function_call: CallJson {
                id: given_id(self.manner, call),
                name: &call.name,
                args: Object::of(args, "arguments"),
            },
            thought_signature: signature.map(|s| s.0).or(must_be_signed.then_some(NOT_SIGNED.into())),
        }
    }

    fn media<'a>(&self, media: &'a Media) -> Option<PartJson<'a>> {
        let says = |was: &Block| matches!(was, Block::Image(was) | Block::Document(was) if was.source == media.source);
        self.manner.own(media.raw.as_ref()).filter(|own| self.is_of(own, says)).map(PartJson::Raw)
    }

    /// True if the provider's JSON is still of one block that `says` the same: the block may have been edited.
    fn is_of(&self, own: &RawValue, says: impl FnOnce(&Block) -> bool) -> bool {
        let (mut fold, mut nobody) = (Fold::new(self.manner.origin.clone(), false), Vec::new());
        items(own).into_iter().for_each(|part| fold.push(part, "", &mut nobody));
        matches!(&*fold.finish(&Rest::default(), &mut nobody), [was] if says(was))
    }
}

/// The parts in a block's JSON, which is one or a list of them.
fn items(own: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(own.get()).unwrap_or_else(|_| vec![own])
}

fn push_own<'a>(own: &'a RawValue, parts: &mut Vec<PartJson<'a>>) {
    parts.extend(items(own).into_iter().map(PartJson::Raw));
}
