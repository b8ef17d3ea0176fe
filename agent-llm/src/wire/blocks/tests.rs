//! Invariant of every answer on every wire: the chunks add up to the message.

use std::collections::BTreeMap;

use agent_core::{
    Media,
    message::{Origin, Raw, Reasoning},
    model::MessageBuilder,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// An event of a wire about a block.
#[derive(Clone, Debug)]
enum Said {
    Text(String),
    Reasoning(String),
    Call,
    Arguments(String),
    TurnTo,
    Settle(Block),
}

fn piece() -> impl Strategy<Value = String> {
    "[ab]{0,2}"
}

fn block() -> impl Strategy<Value = Block> {
    let raw = || Raw::from_value(Origin::new("wire", "acme", "m"), &json!({"x": 1}));
    prop_oneof![
        "[ab]{1,3}".prop_map(Block::text),
        (piece(), any::<bool>()).prop_map(move |(text, signed)| {
            Block::Reasoning(Reasoning { text, raw: signed.then(raw), ..Reasoning::default() })
        }),
        ("[cd]", piece()).prop_map(|(id, arguments)| Block::tool_call(id, "f", arguments)),
        Just(Block::Image(Media::base64("aGk=", "image/png"))),
        Just(Block::Other(raw())),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        piece().prop_map(Said::Text),
        piece().prop_map(Said::Reasoning),
        Just(Said::Call),
        piece().prop_map(Said::Arguments),
        Just(Said::TurnTo),
        block().prop_map(Said::Settle),
    ]
}

fn written(events: &[(u8, Said)], is_heard: bool, out: &mut Vec<Chunk>) -> Blocks<u8> {
    let mut blocks = Blocks::new(is_heard);
    for (key, said) in events.iter().cloned() {
        match said {
            Said::Text(delta) => blocks.text(key, &delta, out),
            Said::Reasoning(delta) => blocks.reasoning(key, &delta, out),
            Said::Call => blocks.call(key, "c", "f", out),
            Said::Arguments(delta) => blocks.arguments(key, &delta, out),
            Said::TurnTo => blocks.turn_to(key, out),
            Said::Settle(block) => blocks.settle(key, block, out),
        }
    }
    blocks
}

/// Checks the chunk rules: blocks begin in order, end once, and receive nothing afterwards.
fn check_order(chunks: &[Chunk], blocks: usize) {
    let mut ended: BTreeMap<u32, bool> = BTreeMap::new();
    for chunk in chunks {
        let index = match chunk {
            Chunk::Restart => {
                ended.clear();
                continue;
            }
            Chunk::Text { index, .. }
            | Chunk::Reasoning { index, .. }
            | Chunk::ToolCall { index, .. }
            | Chunk::Arguments { index, .. }
            | Chunk::Block { index, .. }
            | Chunk::End { index } => *index,
            other => panic!("{other:?}"),
        };
        assert!(ended.contains_key(&index) || ended.len() == index as usize, "{index} begins in order: {chunks:?}");
        let has_ended = ended.entry(index).or_default();
        assert!(!*has_ended || matches!(chunk, Chunk::Block { .. }), "{index} goes on after its end: {chunks:?}");
        *has_ended |= matches!(chunk, Chunk::End { .. });
    }
    assert_eq!(ended.len(), blocks, "{chunks:?}");
    assert!(ended.values().all(|ended| *ended), "each ends: {chunks:?}");
}

proptest! {
    #[test]
    fn the_chunks_of_an_answer_make_its_message(
        events in prop::collection::vec((0..4_u8, said()), 0..12),
        other in prop::option::of(prop::collection::vec(block(), 0..5)),
    ) {
        let mut chunks = Vec::new();
        let blocks = written(&events, true, &mut chunks);
        // Most wires end with the streamed content; some servers end with different content.
        let wanted = other.unwrap_or_else(|| written(&events, true, &mut Vec::new()).into_blocks());
        let made = blocks.finish(wanted.clone(), &mut chunks);
        prop_assert_eq!(&made, &wanted);
        let mut heard = MessageBuilder::default();
        chunks.iter().for_each(|chunk| heard.push(chunk));
        prop_assert_eq!(heard.into_blocks(), wanted.clone(), "{:?}", chunks);
        check_order(&chunks, wanted.len());
        let mut none = Vec::new();
        prop_assert_eq!(written(&events, false, &mut none).finish(wanted.clone(), &mut none), wanted);
        prop_assert!(none.is_empty(), "nobody listens");
    }
}

#[test]
fn nothing_is_told_twice() {
    let mut chunks = Vec::new();
    let mut blocks = Blocks::new(true);
    blocks.text(1, "a", &mut chunks);
    blocks.turn_to(2, &mut chunks);
    blocks.call(2, "c", "f", &mut chunks);
    blocks.arguments(2, "{}", &mut chunks);
    assert_eq!((blocks.said(1), blocks.said(2), blocks.said(3)), ("a", "{}", ""));
    blocks.finish(vec![Block::text("a"), Block::tool_call("c", "f", "{}")], &mut chunks);
    let expected = [
        Chunk::Text { index: 0, delta: "a".into() },
        Chunk::End { index: 0 },
        Chunk::ToolCall { index: 1, id: "c".into(), name: "f".into() },
        Chunk::Arguments { index: 1, delta: "{}".into() },
        Chunk::End { index: 1 },
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn what_is_taken_back_is_told_again_from_the_start() {
    let mut chunks = Vec::new();
    let mut blocks = Blocks::new(true);
    blocks.text(1, "no", &mut chunks);
    blocks.finish(vec![Block::tool_call("c", "f", "")], &mut chunks);
    assert_eq!(chunks[1], Chunk::Restart);
}
