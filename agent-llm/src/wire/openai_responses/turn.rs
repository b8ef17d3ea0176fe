//! Encoding of the model's turns, as far as possible with the provider's own JSON.

use std::{borrow::Cow, collections::BTreeMap};

use agent_core::{
    AssistantMessage, Block, Media, ToolCall,
    message::{Reasoning, ServerCall},
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    MessageStyle,
    encode::{is_part, write_item},
    read::{items, read},
};
use crate::wire::{
    content::{lines, same_call},
    json::Json,
    lenient::{kind, lenient},
    openai_chat::messages::{Said, Spoken},
};

/// Writes `message` as items, each followed by a comma:
///
/// * unchanged, if it is this provider's and unedited;
/// * if it was edited, with the provider's own items if they still match, without their ids;
/// * if it is another provider's or nobody's, from its blocks, without the reasoning, which only
///   its author accepts.
pub(super) fn write(manner: &MessageStyle, message: &AssistantMessage, out: &mut Vec<u8>) {
    let items = manner.own(message.raw()).map(|own| items(own.get())).unwrap_or_default();
    let sent: Vec<Sent<'_>> = match message.is_edited() {
        true => items.iter().map(|item| (*item, read(item, &manner.origin))).collect(),
        false => Vec::new(),
    };
    // A message may be marked as edited without any change.
    let is_as_sent = !message.is_edited() || sent.iter().flat_map(|(_, said)| said).eq(message.blocks());
    if !is_as_sent || items.is_empty() {
        return Projection { manner, sent: &sent, out }.write(message.blocks());
    }
    for item in items {
        out.extend_from_slice(taken(item).as_bytes());
        out.push(b',');
    }
}

/// Fields of an item that only the server uses.
const BOOKKEEPING: [&str; 2] = ["metadata", "internal_chat_message_metadata_passthrough"];

/// Removes the parts of an item that servers send but reject: search sources without a URL, and
/// empty log probabilities.
fn taken(item: &RawValue) -> Cow<'_, str> {
    let json = item.get();
    if !["\"sources\"", "\"logprobs\"", "metadata"].iter().any(|field| json.contains(field)) {
        return json.into();
    }
    let said: Value = lenient(item);
    let mut taken = said.clone();
    if let Some(Value::Array(sources)) = taken.pointer_mut("/action/sources") {
        sources.retain(|source| source["url"].is_string());
    }
    if let Some(fields) = taken.as_object_mut() {
        fields.retain(|name, _| !BOOKKEEPING.contains(&name.as_str()));
    }
    let content = taken.get_mut("content").and_then(Value::as_array_mut);
    for part in content.into_iter().flatten().filter_map(Value::as_object_mut) {
        part.retain(|name, value| name != "logprobs" || !value.is_null());
    }
    if taken == said { json.into() } else { taken.to_string().into() }
}

/// An item from the provider, with its blocks.
type Sent<'a> = (&'a RawValue, Vec<Block>);

/// Fields of an item, as received.
type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

struct Projection<'a> {
    manner: &'a MessageStyle,
    /// Items that have not been written yet.
    sent: &'a [Sent<'a>],
    out: &'a mut Vec<u8>,
}

impl Projection<'_> {
    fn write(&mut self, mut blocks: &[Block]) {
        while let [block, rest @ ..] = blocks {
            let unchanged = self.sent.iter().position(|(_, said)| !said.is_empty() && blocks.starts_with(said));
            blocks = if let Some(at) = unchanged {
                let (json, said) = &self.sent[at];
                self.sent = &self.sent[at + 1..];
                self.write_own(json);
                &blocks[said.len()..]
            } else if self.is_spoken(block) {
                self.write_message(blocks)
            } else {
                self.write_block(block);
                rest
            };
        }
    }

    /// Writes an item of the provider without its id, if it is useful without.
    fn write_own(&mut self, json: &RawValue) {
        let taken = taken(json);
        let mut item: Fields<'_> = serde_json::from_str(&taken).unwrap_or_default();
        let kind = kind(json);
        let says = |field: &str| item.get(field).is_some_and(|json| !matches!(json.get(), "null" | "\"\"" | "[]"));
        if item.is_empty() || kind == "reasoning" && !says("encrypted_content") && !says("content") {
            return; // only its id identifies it
        }
        if kind != "image_generation_call" {
            item.remove("id");
        }
        write_item(&item, self.out);
    }

    /// Writes the leading `blocks` that belong to one message, and returns the others. A changed
    /// message of the provider keeps its other fields.
    fn write_message<'b>(&mut self, blocks: &'b [Block]) -> &'b [Block] {
        let shell = self.sent.first().filter(|(_, said)| said.first().is_some_and(|block| self.is_spoken(block)));
        let most = shell.map_or(usize::MAX, |(_, said)| said.len());
        let count = blocks.iter().take(most).take_while(|block| self.is_spoken(block)).count();
        let (run, rest) = blocks.split_at(count);
        self.sent = &self.sent[usize::from(shell.is_some())..];
        let own_parts = run.iter().any(|block| self.own_part(block).is_some());
        let anew = own_parts.then_some(r#"{"type":"message","role":"assistant"}"#);
        if let Some(shell) = shell.map(|(json, _)| json.get()).or(anew) {
            let content: Vec<_> = run.iter().filter_map(|block| self.part(block)).collect();
            let content = to_raw_value(&content).unwrap_or_default();
            let mut message: Fields<'_> = serde_json::from_str(shell).unwrap_or_default();
            message.remove("id");
            message.insert("content".into(), &content);
            write_item(&message, self.out);
        } else {
            let words = lines(run.iter().filter_map(words));
            write_item(&Spoken::new("assistant", Said::Text(words)), self.out);
        }
        rest
    }

    /// Returns true if the block is part of a message rather than a separate item.
    fn is_spoken(&self, block: &Block) -> bool {
        match block {
            Block::Text(_) | Block::Document(_) => true,
            Block::Image(media) => self.manner.own(media.raw.as_ref()).is_none(),
            _ => self.own_part(block).is_some(),
        }
    }

    fn part<'b>(&self, block: &'b Block) -> Option<Json<'b>> {
        match self.own_part(block) {
            Some(own) => Some(Json::Own(own)),
            None => Some(Json::Made(json!({"type": "output_text", "text": words(block)?, "annotations": []}))),
        }
    }

    /// Returns the provider's own JSON of a message part.
    fn own_part<'b>(&self, block: &'b Block) -> Option<&'b RawValue> {
        let raw = match block {
            Block::Text(text) => text.raw.as_ref(),
            Block::Other(raw) => Some(raw),
            _ => None,
        };
        let still_says = |own: &RawValue| words(block).is_none_or(|text| lenient::<Value>(own)["text"] == *text);
        self.manner.own(raw).filter(|own| is_part(own) && still_says(own))
    }

    fn write_block(&mut self, block: &Block) {
        match block {
            Block::ToolCall(call) => self.write_call(call),
            Block::Reasoning(Reasoning { raw: Some(raw), .. })
            | Block::Image(Media { raw: Some(raw), .. })
            | Block::Server(ServerCall { raw, .. })
            | Block::Other(raw) => self.manner.own(Some(raw)).into_iter().for_each(|own| self.write_own(own)),
            _ => {}
        }
    }

    fn write_call(&mut self, call: &ToolCall) {
        let ToolCall { id, name, arguments, raw } = call;
        let own = self.manner.own(raw.as_ref());
        let is_it = |was: Block| matches!(was, Block::ToolCall(was) if same_call(&was, call));
        if let Some(own) = own.filter(|own| read(own, &self.manner.origin).into_iter().any(is_it)) {
            return self.write_own(own);
        }
        let (kind, place) = match own.map(kind).as_deref() {
            Some("custom_tool_call") => ("custom_tool_call", "input"),
            _ => ("function_call", "arguments"),
        };
        // Some models omit empty arguments, which servers then reject.
        let said = if arguments.is_empty() && place == "arguments" { "{}" } else { arguments };
        write_item(&json!({"type": kind, "call_id": id, "name": name, (place): said}), self.out);
    }
}

/// Returns the text of a block. The API accepts no media from the model: a placeholder is sent.
fn words(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(&text.text),
        Block::Image(_) => Some("[image]"),
        Block::Document(_) => Some("[document]"),
        _ => None,
    }
}
