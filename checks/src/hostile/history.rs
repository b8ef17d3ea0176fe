//! Generated conversations.

use agent::{
    AssistantMessage, Block, Message, Part,
    core::{
        History, Media, ToolMessage,
        message::{Origin, Raw, UserMessage},
    },
    testing::SeededRng,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

const TEXTS: [&str; 9] =
    ["hello", "", " ", "\n\n", "\u{0}", "\u{feff}bom", "👩‍👩‍👧 héllo שלום", "<|im_end|></think>", "\u{202e}right"];
const NAMES: [&str; 10] = [
    "look",
    "browser.tabs.open",
    "functions.look",
    "look<|channel|>commentary",
    "a b",
    "名前",
    "",
    "x/y:z",
    "<invoke name=\"look\">",
    "-",
];
const IDS: [&str; 9] =
    ["call_1", "functions.look:0", "", "call/1", "toolu 1", "ünï", "chatcmpl-tool-0123456789abcdef", "1", "call_1"];
const ARGUMENTS: [&str; 12] = [
    "{}",
    "",
    "null",
    "[]",
    r#""{\"a\":1}""#,
    r#"{"a":12345678901234567890}"#,
    r#"{"a":0.1000000000000000055511151231257827}"#,
    r#"{"a":1e308}"#,
    r#"{"a":"\ud83d"}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"a":{"b":[null,true]}}"#,
    r#" {"a": "x"} "#,
];
const RESULTS: [&str; 7] = ["ok", "", " ", r##"{"$ref":"#/a"}"##, "[1,2]", r#"{"n":12345678901234567890}"#, "null"];

/// Returns a conversation of up to eight turns.
pub(super) fn generate(rng: &mut SeededRng) -> History {
    let mut messages = Vec::new();
    for turn in 0..=rng.below(8) {
        match rng.below(10) {
            _ if turn == 0 && rng.chance(80) => messages.push(user(rng)),
            0..=3 => messages.push(user(rng)),
            4 => messages.push(Message::Assistant(AssistantMessage::new(said(rng)))),
            5 => messages.push(Message::system(pick(rng, &TEXTS))),
            _ => calls(rng, &mut messages),
        }
    }
    messages.push(user(rng));
    History::import(messages).0
}

pub(super) fn pick<'a>(rng: &mut SeededRng, of: &[&'a str]) -> &'a str {
    of[usize::try_from(rng.below(of.len() as u64)).unwrap_or(0)]
}

fn user(rng: &mut SeededRng) -> Message {
    let mut parts = vec![Part::text(pick(rng, &TEXTS))];
    for _ in 0..rng.below(3) {
        parts.push(if rng.chance(60) { image(rng) } else { Part::text(pick(rng, &TEXTS)) });
    }
    Message::User(UserMessage::new(parts))
}

/// Returns an image whose media type may be wrong, and whose content may be of any kind.
fn image(rng: &mut SeededRng) -> Part {
    let side: u32 = if rng.chance(20) { 9_000 } else { 32 };
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(side.to_be_bytes());
    png.extend(side.to_be_bytes());
    png.extend([8, 2, 0, 0, 0]);
    let content: Vec<u8> = match rng.below(7) {
        0 => b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01".to_vec(),
        1 => b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(),
        2 => Vec::new(),
        3 => b"GIF89a\x01\0\x01\0".to_vec(),
        4 => b"BM\x40\0\0\0\0\0\0\0\x36\0\0\0".to_vec(),
        _ => png,
    };
    let mime = pick(rng, &["image/png", "image/jpeg", "image/webp", "image/gif"]);
    Part::Image(Media::base64(BASE64_STANDARD.encode(content), mime))
}

fn said(rng: &mut SeededRng) -> Vec<Block> {
    let mut blocks = Vec::new();
    if rng.chance(40) {
        blocks.push(Block::reasoning(pick(rng, &TEXTS)));
    }
    if rng.chance(70) || blocks.is_empty() {
        blocks.push(Block::text(pick(rng, &TEXTS)));
    }
    blocks
}

/// Adds a message with calls, and their results.
fn calls(rng: &mut SeededRng, messages: &mut Vec<Message>) {
    let mut blocks = if rng.chance(50) { said(rng) } else { Vec::new() };
    let mut results = Vec::new();
    for n in 0..=rng.below(3) {
        let (id, name) = (id(rng, n), name(rng));
        blocks.push(Block::tool_call(&*id, &*name, pick(rng, &ARGUMENTS)));
        let mut parts = vec![Part::text(pick(rng, &RESULTS))];
        if rng.chance(15) {
            parts.push(image(rng));
        }
        results.push(Message::Tool(ToolMessage::new(id, name, parts.into(), rng.chance(20))));
    }
    let message = if rng.chance(30) {
        let origin = Origin::new("openai-chat", "elsewhere", "m");
        AssistantMessage::from_provider(blocks, Raw::from_value(origin, &json!({"role": "assistant", "own": 1})))
    } else {
        AssistantMessage::new(blocks)
    };
    messages.push(Message::Assistant(message));
    messages.append(&mut results);
}

/// Returns an id that is unique in its message, but not in the conversation.
fn id(rng: &mut SeededRng, n: u64) -> String {
    let id = pick(rng, &IDS);
    let id = if rng.chance(20) { format!("{id}{}", "x".repeat(100)) } else { id.to_owned() };
    if n == 0 { id } else { format!("{id}{n}") }
}

fn name(rng: &mut SeededRng) -> String {
    if rng.chance(10) { "long_".repeat(40) } else { pick(rng, &NAMES).to_owned() }
}
