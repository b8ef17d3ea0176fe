//! Properties of every answer.

use agent_core::{Block, Chunk, model::MessageBuilder};
use agent_llm::{Codec, RequestReader};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{answer, codec, common::streamed, delta, raw, sent_back, start, stop, stream_of};

/// One block with all its parts, and the split into deltas.
#[derive(Clone, Debug)]
enum Said {
    Text(Vec<String>, usize),
    Thinking(Vec<String>, Vec<String>),
    Redacted(String),
    Call(String, Vec<(String, i64)>, usize, bool),
    Other(Vec<String>),
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zä😀\"\\\\\n ]{0,4}", 1..5)
}

fn block() -> impl Strategy<Value = Said> {
    prop_oneof![
        (pieces(), 0..3_usize).prop_map(|(text, cited)| Said::Text(text, cited)),
        (pieces(), prop::collection::vec("[a-z=]{1,4}", 1..3)).prop_map(|(text, proof)| Said::Thinking(text, proof)),
        "[a-z=]{1,8}".prop_map(Said::Redacted),
        ("[a-z]{1,6}", prop::collection::vec(("[a-zä\"]{0,4}", any::<i64>()), 0..3), 1..9_usize, any::<bool>())
            .prop_map(|(name, input, cut, more)| Said::Call(name, input, cut, more)),
        pieces().prop_map(Said::Other),
    ]
}

fn content() -> impl Strategy<Value = Vec<Said>> {
    prop::collection::vec(block(), 0..6)
}

impl Said {
    fn whole(&self, at: usize) -> Value {
        match self {
            Self::Text(text, 0) => json!({"type": "text", "text": text.concat()}),
            Self::Text(text, cited) => {
                let citations: Vec<_> = (0..*cited).map(citation).collect();
                json!({"type": "text", "text": text.concat(), "citations": citations})
            }
            Self::Thinking(text, proof) => {
                json!({"type": "thinking", "thinking": text.concat(), "signature": proof.concat()})
            }
            Self::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
            Self::Call(name, input, _, more) => {
                let input: serde_json::Map<_, _> = input.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
                let mut call = json!({"type": "tool_use", "id": format!("c{at}"), "name": name, "input": input});
                if *more {
                    call["caller"] = json!({"type": "direct"});
                }
                call
            }
            Self::Other(pieces) => json!({"type": "compaction", "content": pieces.concat()}),
        }
    }

    fn events(&self, at: usize) -> Vec<Value> {
        let index = at as u32;
        let mut begin = self.whole(at);
        let mut deltas = Vec::new();
        match self {
            Self::Text(text, cited) => {
                begin["text"] = "".into();
                if *cited > 0 {
                    begin["citations"] = json!([]);
                }
                let cited = (0..*cited).map(|n| json!({"type": "citations_delta", "citation": citation(n)}));
                deltas.extend(cited.chain(text.iter().map(|t| json!({"type": "text_delta", "text": t}))));
            }
            Self::Thinking(text, proof) => {
                (begin["thinking"], begin["signature"]) = ("".into(), "".into());
                deltas.extend(text.iter().map(|t| json!({"type": "thinking_delta", "thinking": t})));
                deltas.extend(proof.iter().map(|s| json!({"type": "signature_delta", "signature": s})));
            }
            Self::Redacted(_) => {}
            Self::Call(_, _, cut, _) => {
                let input: Vec<char> = begin["input"].to_string().chars().collect();
                begin["input"] = json!({});
                let pieces = input.chunks(*cut).map(|piece| piece.iter().collect::<String>());
                deltas.extend(pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})));
            }
            Self::Other(pieces) => {
                begin["content"] = Value::Null;
                deltas.extend(pieces.iter().map(|piece| json!({"type": "compaction_delta", "content": piece})));
            }
        }
        let deltas = deltas.into_iter().map(|d| delta(index, d));
        [start(index, begin)].into_iter().chain(deltas).chain([stop(index)]).collect()
    }
}

fn citation(n: usize) -> Value {
    json!({"type": "web_search_result_location", "url": format!("https://x/{n}"), "cited_text": "q"})
}

fn whole(said: &[Said]) -> Value {
    said.iter().enumerate().map(|(at, block)| block.whole(at)).collect()
}

fn events(said: &[Said]) -> Vec<Value> {
    said.iter().enumerate().flat_map(|(at, block)| block.events(at)).collect()
}

/// Any event, with few enough block indices to collide.
fn any_event() -> impl Strategy<Value = Value> {
    let index = || prop_oneof![Just(json!(0)), Just(json!(1)), Just(json!(2)), Just(Value::Null)];
    let block = prop_oneof![
        Just(json!({"type": "text", "text": ""})),
        Just(json!({"type": "text", "text": "x", "citations": null})),
        Just(json!({"type": "thinking", "thinking": ""})),
        Just(json!({"type": "redacted_thinking", "data": "d"})),
        Just(json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        Just(json!({"type": "tool_use", "id": "b", "name": "g", "input": {"x": 1}, "caller": {}})),
        Just(json!({"type": "tool_use", "id": "", "name": "", "input": {}})),
        Just(json!({"type": "tool_use"})),
        Just(json!({"type": "server_tool_use", "id": "s", "input": {}})),
        Just(json!({})),
        Just(Value::Null),
    ];
    let more = prop_oneof![
        Just(json!({"type": "text_delta", "text": "t"})),
        Just(json!({"type": "text_delta"})),
        Just(json!({"type": "thinking_delta", "thinking": "h"})),
        Just(json!({"type": "signature_delta", "signature": "s"})),
        Just(json!({"type": "citations_delta", "citation": {"url": "u"}})),
        Just(json!({"type": "input_json_delta", "partial_json": "{}"})),
        Just(json!({"type": "input_json_delta", "partial_json": " [\"é"})),
        Just(json!({"type": "compaction_delta", "content": "c"})),
        Just(json!({"text": "t", "x": {"y": 1}})),
        Just(Value::Null),
    ];
    prop_oneof![
        3 => (index(), block).prop_map(|(i, b)| json!({"type": "content_block_start", "index": i, "content_block": b})),
        6 => (index(), more).prop_map(|(i, d)| json!({"type": "content_block_delta", "index": i, "delta": d})),
        2 => index().prop_map(|i| json!({"type": "content_block_stop", "index": i})),
        1 => Just(json!({"type": "message_start", "message": {"usage": null}})),
        1 => Just(json!({"type": "message_delta", "delta": {"stop_sequence": "x"}, "usage": {"output_tokens": null}})),
    ]
}

proptest! {
    #[test]
    fn a_streamed_message_is_the_one_that_would_have_come_whole(said in content()) {
        let (streamed, _) = streamed(&codec(), &stream_of(&events(&said))).expect("an answer");
        let answered = codec().decode(answer(&whole(&said), "end_turn").as_bytes()).expect("an answer");
        prop_assert_eq!(raw(&streamed.message), raw(&answered.message));
        // The order of fields in raw JSON may differ.
        let blocks = |blocks: &[Block]| serde_json::to_value(blocks).expect("serialises");
        prop_assert_eq!(blocks(streamed.message.blocks()), blocks(answered.message.blocks()));
        prop_assert_eq!((&streamed.finish, &streamed.usage, &streamed.details), (&answered.finish, &answered.usage, &answered.details));
    }

    #[test]
    fn what_was_said_goes_back_verbatim_and_after_an_edit_that_changes_nothing(said in content()) {
        let message = codec().decode(answer(&whole(&said), "end_turn").as_bytes()).expect("an answer").message;
        prop_assume!(!message.is_empty());
        // The API rejects a message of only blank texts.
        let mut texts = message.blocks().iter().filter_map(|block| if let Block::Text(text) = block { Some(text) } else { None });
        prop_assume!(texts.clone().next().is_none() || texts.any(|text| !text.text.trim().is_empty()));
        let mut edited = message.clone();
        edited.blocks_mut();
        let back = sent_back(&codec(), &message)["content"].clone();
        prop_assert_eq!(&back, &raw(&message)["content"]);
        prop_assert_eq!(&sent_back(&codec(), &edited)["content"], &back);
    }

    #[test]
    fn the_chunks_of_any_stream_make_its_message(events in prop::collection::vec(any_event(), 0..30)) {
        let body = stream_of(&events);
        let (streamed, chunks) = streamed(&codec(), &body).expect("an answer");
        let mut heard = MessageBuilder::default();
        chunks.iter().for_each(|chunk| heard.push(chunk));
        let blocks = streamed.message.blocks();
        prop_assert_eq!(&heard.into_blocks(), blocks);
        let mut ended: Vec<u32> =
            chunks.iter().filter_map(|c| if let Chunk::End { index } = c { Some(*index) } else { None }).collect();
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..blocks.len() as u32).collect::<Vec<_>>(), "each ends once");
        prop_assert!(streamed.message.calls().all(|call| !call.id.is_empty() && !call.name.is_empty()));
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = codec().decode(&body);
        let _ = codec().decode_request(&body);
        let _ = streamed(&codec(), &format!("data: {}\n\n", String::from_utf8_lossy(&body)));
    }

    #[test]
    fn no_change_of_a_byte_makes_a_decoder_panic(said in content(), at: prop::sample::Index, byte: u8) {
        let request = json!({"messages": [{"role": "assistant", "content": whole(&said)}]}).to_string();
        for body in [answer(&whole(&said), "end_turn"), stream_of(&events(&said)), request] {
            let mut bytes = body.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = codec().decode(&bytes);
            let _ = codec().decode_request(&bytes);
            let _ = streamed(&codec(), &String::from_utf8_lossy(&bytes));
        }
    }
}
