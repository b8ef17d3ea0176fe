//! Writing what the model said, as far as possible in the words of its provider.

use std::{borrow::Cow, collections::BTreeMap};

use agent_core::{
    AssistantMessage, Block, Media, ToolCall,
    message::{Raw, Reasoning, ServerCall},
};
use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    Manner,
    encode::write_item,
    parts::is_part,
    read::{items, read},
};
use crate::wire::{
    content::same_call,
    json::{Json, knows},
    lenient::{kind, lenient},
    openai_chat::messages::{Said, Spoken},
};

/// Writes `message` as items with a comma after each:
///
/// * as its provider sent it, if this is the provider and nobody edited it;
/// * if it was edited, with the provider's own items where they still say the same, without their ids;
/// * if it is another provider's or nobody's, as its blocks say, without the reasoning, which only its author takes back.
pub(super) fn write(manner: &Manner, message: &AssistantMessage, out: &mut Vec<u8>) {
    let own = message.raw().filter(|raw| knows(&manner.origin, raw));
    let sent = own.filter(|_| message.is_edited()).map(sent).unwrap_or_default();
    // It may be edited, and nothing changed.
    let is_as_sent =
        !message.is_edited() || !sent.is_empty() && sent.iter().flat_map(|item| &item.blocks).eq(message.blocks());
    let as_sent = own.filter(|_| is_as_sent).and_then(|own| Some((inside(own)?, items(own.json()))));
    match as_sent {
        Some((_, items)) if items.iter().any(|item| matches!(taken(item), Cow::Owned(_))) => {
            items.into_iter().for_each(|item| write_list(&taken(item), out));
        }
        Some((list, _)) => write_list(list, out),
        None => Projection { manner, sent: &sent, out }.write(message.blocks()),
    }
}

/// Writes JSON of items with a comma after it.
fn write_list(items: &str, out: &mut Vec<u8>) {
    if !items.is_empty() {
        out.extend_from_slice(items.as_bytes());
        out.push(b',');
    }
}

/// The item without what servers say that they do not take: sources of a search that have no address, and log probabilities of
/// which there are none.
fn taken(item: &RawValue) -> Cow<'_, str> {
    let json = item.get();
    let mut said: Value = match ["\"sources\"", "\"logprobs\""].iter().any(|name| json.contains(name)) {
        true => lenient(item),
        false => return json.into(),
    };
    let mut is_changed = false;
    if let Some(Value::Array(sources)) = said.pointer_mut("/action/sources") {
        let count = sources.len();
        sources.retain(|source| source["url"].is_string());
        is_changed |= sources.len() < count;
    }
    let content = said.get_mut("content").and_then(Value::as_array_mut);
    for part in content.into_iter().flatten().filter_map(Value::as_object_mut) {
        is_changed |= part.get("logprobs").is_some_and(Value::is_null) && part.remove("logprobs").is_some();
    }
    if is_changed { said.to_string().into() } else { json.into() }
}

/// What stands between the brackets of a list.
fn inside(raw: &Raw) -> Option<&str> {
    raw.json().trim().strip_prefix('[')?.strip_suffix(']').map(str::trim)
}

/// An item that the provider sent.
struct Sent<'a> {
    json: &'a RawValue,
    blocks: Vec<Block>,
}

fn sent(raw: &Raw) -> Vec<Sent<'_>> {
    let items = items(raw.json()).into_iter();
    items.map(|json| Sent { json, blocks: read(json, raw.origin()) }).collect()
}

struct Projection<'a> {
    manner: &'a Manner,
    /// Items that have not been written yet.
    sent: &'a [Sent<'a>],
    out: &'a mut Vec<u8>,
}

#[derive(Serialize)]
struct MessageJson<'a> {
    r#type: &'static str,
    role: &'static str,
    content: Vec<Json<'a>>,
}

/// The fields of an item, as they were sent.
type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

impl Projection<'_> {
    fn write(&mut self, mut blocks: &[Block]) {
        while let Some(block) = blocks.first() {
            let unchanged = |item: &Sent<'_>| !item.blocks.is_empty() && blocks.starts_with(&item.blocks);
            let taken = if let Some(at) = self.sent.iter().position(unchanged) {
                let item = &self.sent[at];
                self.sent = &self.sent[at + 1..];
                self.write_own(item.json);
                item.blocks.len()
            } else if self.is_spoken(block) {
                self.write_message(blocks)
            } else {
                self.write_block(block);
                1
            };
            blocks = &blocks[taken..];
        }
    }

    /// Writes an item of the provider's without its id, if it is worth something without.
    fn write_own(&mut self, json: &RawValue) {
        let taken = taken(json);
        let mut item: Fields<'_> = serde_json::from_str(&taken).unwrap_or_default();
        let kind = kind(json);
        let says = |field: &str| item.get(field).is_some_and(|json| !matches!(json.get(), "null" | "\"\"" | "[]"));
        if item.is_empty() || kind == "reasoning" && !says("encrypted_content") && !says("content") {
            return; // the provider finds it by its id alone
        }
        if kind != "image_generation_call" {
            item.remove("id");
        }
        write_item(&item, self.out);
    }

    /// Writes the first of `blocks` that are spoken as one message, and returns how many these are. A message of the
    /// provider's that was changed keeps what else it says.
    fn write_message(&mut self, blocks: &[Block]) -> usize {
        let shell = self.sent.first().filter(|item| item.blocks.first().is_some_and(|block| self.is_spoken(block)));
        let most = shell.map_or(usize::MAX, |item| item.blocks.len());
        let run = &blocks[..blocks.iter().take(most).take_while(|block| self.is_spoken(block)).count()];
        let content: Vec<_> = run.iter().filter_map(|block| self.part(block)).collect();
        if let Some(shell) = shell {
            self.sent = &self.sent[1..];
            let (mut message, content): (Fields<'_>, _) = (lenient(shell.json), to_raw_value(&content));
            let content = content.unwrap_or_default();
            message.remove("id");
            message.insert("content".into(), &content);
            write_item(&message, self.out);
        } else if run.iter().any(|block| self.own_part(block).is_some()) {
            write_item(&MessageJson { r#type: "message", role: "assistant", content }, self.out);
        } else if !content.is_empty() {
            let words: Vec<_> = run.iter().filter_map(words).collect();
            write_item(&Spoken::new("assistant", Said::Text(words.join("\n").into())), self.out);
        }
        run.len()
    }

    /// True if the block is part of a message, and no item of its own.
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

    /// The provider's own JSON of a part of a message.
    fn own_part<'b>(&self, block: &'b Block) -> Option<&'b RawValue> {
        let own = match block {
            Block::Text(text) => {
                self.manner.own(text.raw.as_ref()).filter(|own| lenient::<Value>(own)["text"] == *text.text)
            }
            Block::Other(raw) => self.manner.own(Some(raw)),
            _ => None,
        };
        own.filter(|own| is_part(own))
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
        let still_says = |own: &&RawValue| {
            read(own, &self.manner.origin).iter().any(|was| matches!(was, Block::ToolCall(was) if same_call(was, call)))
        };
        match own.filter(still_says) {
            Some(own) => self.write_own(own),
            None if own.is_some_and(|own| kind(own) == "custom_tool_call") => {
                let call = json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": arguments});
                write_item(&call, self.out);
            }
            None => {
                // Some models leave out arguments that there are none of, and servers then refuse them.
                let arguments = if arguments.is_empty() { "{}" } else { arguments };
                let call = json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
                write_item(&call, self.out);
            }
        }
    }
}

/// What the block says in words. The API takes no media of the model's own: that there was some is said.
fn words(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => Some(&text.text),
        Block::Image(_) => Some("[image]"),
        Block::Document(_) => Some("[document]"),
        _ => None,
    }
}
