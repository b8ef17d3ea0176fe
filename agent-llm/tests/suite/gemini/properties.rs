//! Properties of every answer.

use agent_core::{Chunk, ModelResponse};
use agent_llm::{Codec, RequestReader, SseSplitter};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{call, codec, events, frames, heard, raw, response, sent_back, signed, stream, text, thought};

/// A part as a model sends it.
fn part() -> impl Strategy<Value = Value> {
    let words = "[a-zä😀\"\\\\\n ]{0,4}";
    prop_oneof![
        4 => words.prop_map(|words| text(&words)),
        2 => words.prop_map(|words| thought(&words)),
        1 => words.prop_map(|words| signed(text(&words))),
        1 => words.prop_map(|words| signed(thought(&words))),
        1 => ("[a-z]{1,3}", words).prop_map(|(name, words)| call(&name, json!({"x": words}))),
        1 => "[a-z]{1,3}".prop_map(|name| signed(call(&name, json!({})))),
        1 => ("[a-z]{1,3}", "[a-z]{1,3}").prop_map(|(name, id)| json!({"functionCall": {"name": name, "id": id}})),
        1 => Just(json!({"thoughtSignature": "c2ln"})),
        1 => Just(json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}})),
        1 => Just(signed(json!({"inlineData": {"mimeType": "audio/wav", "data": "QUJD"}}))),
        1 => Just(json!({"fileData": {"fileUri": "https://x/y"}})),
        1 => Just(json!({"executableCode": {"language": "PYTHON", "code": "1"}})),
        1 => Just(json!({"holographic": [1.5, null]})),
    ]
}

/// The parts of each event of a stream.
fn pieces() -> impl Strategy<Value = Vec<Vec<Value>>> {
    prop::collection::vec(prop::collection::vec(part(), 0..3), 1..8)
}

/// Any JSON, with names of the API's fields.
fn noise() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zA-Z_ ]{0,4}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "candidates",
        "content",
        "parts",
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "name",
        "args",
        "id",
        "inlineData",
        "fileData",
        "data",
        "mimeType",
        "fileUri",
        "index",
        "finishReason",
        "usageMetadata",
        "promptFeedback",
        "blockReason",
        "groundingMetadata",
        "groundingSupports",
        "citationMetadata",
        "responseId",
        "contents",
        "role",
        "tools",
        "functionDeclarations",
        "functionResponse",
        "response",
        "generationConfig",
        "systemInstruction",
        "toolConfig",
        "functionCallingConfig",
        "mode",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Returns the parts as in a non-streamed response, assembled in the simplest way.
fn whole(pieces: &[Vec<Value>]) -> Vec<Value> {
    let is_plain = |part: &Value| {
        part["text"].is_string()
            && part.as_object().expect("a part").keys().all(|key| key == "text" || key == "thought")
    };
    let mut parts: Vec<Value> = Vec::new();
    for part in pieces.iter().flatten().filter(|part| !(is_plain(part) && part["text"] == "")) {
        match parts.last_mut() {
            Some(last) if is_plain(last) && is_plain(part) && last["thought"] == part["thought"] => {
                let words = [&last["text"], &part["text"]].map(|text| text.as_str().expect("text")).concat();
                last["text"] = words.into();
            }
            _ => parts.push(part.clone()),
        }
    }
    for part in &mut parts {
        if part["functionCall"].is_object()
            && part["functionCall"].get("args").is_none()
            && part["functionCall"].get("id").is_none()
        {
            part["functionCall"]["args"] = json!({});
        }
    }
    parts
}

fn read_whole(pieces: &[Vec<Value>]) -> ModelResponse {
    codec().decode(response(&whole(pieces), Some("STOP")).to_string().as_bytes()).expect("an answer")
}

proptest! {
    #[test]
    fn a_streamed_message_is_the_one_that_would_have_come_whole(pieces in pieces()) {
        let (streamed, whole) = (stream(&frames(&pieces)).0, read_whole(&pieces));
        prop_assert_eq!(streamed.message.blocks(), whole.message.blocks());
        prop_assert_eq!((&streamed.finish, streamed.usage, &streamed.details), (&whole.finish, whole.usage, &whole.details));
        if !whole.message.is_empty() {
            prop_assert_eq!(raw(&streamed), raw(&whole));
        }
    }

    #[test]
    fn the_chunks_of_a_stream_make_its_message(pieces in pieces()) {
        let (streamed, chunks) = stream(&frames(&pieces));
        prop_assert_eq!(&heard(&chunks)[..], streamed.message.blocks());
        let ended: Vec<u32> =
            chunks.iter().filter_map(|c| if let Chunk::End { index } = c { Some(*index) } else { None }).collect();
        prop_assert_eq!(ended, (0..streamed.message.blocks().len() as u32).collect::<Vec<_>>(), "each ends once, in order");
    }

    #[test]
    fn a_turn_goes_back_as_it_came_or_edited_with_the_same_parts(pieces in pieces()) {
        let response = read_whole(&pieces);
        prop_assume!(!response.message.is_empty());
        let ids: std::collections::BTreeSet<_> = response.message.calls().map(|c| &c.id).collect();
        prop_assume!(ids.len() == response.message.calls().count());
        prop_assert_eq!(sent_back(&codec(), &response.message), raw(&response));
        let mut edited = response.message.clone();
        edited.blocks_mut();
        prop_assert_eq!(sent_back(&codec(), &edited), raw(&response));
    }

    #[test]
    fn bytes_may_be_cut_anywhere(pieces in pieces(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let frames = frames(&pieces);
        let body = events(&frames).into_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len())).chain([0, body.len()]).collect();
        cuts.sort_unstable();
        let (mut decoder, mut chunks, mut splitter) = (codec().decoder(true), Vec::new(), SseSplitter::default());
        for cut in cuts.windows(2) {
            splitter.push(&body[cut[0]..cut[1]], |event| decoder.frame(event.data, &mut chunks)).expect("frames");
        }
        prop_assert_eq!((decoder.finish(&mut chunks).expect("an answer"), chunks), stream(&frames));
    }

    #[test]
    fn no_json_makes_anything_panic(frames in prop::collection::vec(noise(), 0..4)) {
        let _ = super::common::streamed(&codec(), &events(&frames));
        for frame in &frames {
            let _ = codec().decode(frame.to_string().as_bytes());
            let _ = codec().decode_request(frame.to_string().as_bytes());
        }
        let candidates = json!({"candidates": frames, "contents": frames, "tools": frames}).to_string();
        let _ = codec().decode(candidates.as_bytes());
        let _ = codec().decode_request(candidates.as_bytes());
    }

    #[test]
    fn no_change_of_a_byte_makes_a_decoder_panic(pieces in pieces(), at: prop::sample::Index, byte: u8) {
        for body in [events(&frames(&pieces)), response(&whole(&pieces), None).to_string()] {
            let mut bytes = body.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = codec().decode(&bytes);
            let _ = super::common::streamed(&codec(), &String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn a_request_that_is_read_and_written_again_keeps_its_contents(turns in prop::collection::vec(pieces(), 0..4)) {
        let contents: Vec<_> = turns.iter().flat_map(|parts| {
            let parts: Vec<_> = parts.iter().flatten().filter(|part| part["functionCall"].is_null()).collect();
            [json!({"role": "user", "parts": parts}), json!({"role": "model", "parts": parts})]
        }).collect();
        let body = json!({"contents": contents});
        let parsed = codec().decode_request(body.to_string().as_bytes()).expect("a request");
        let run = agent_core::testing::detached_run(agent_core::History::default());
        prop_assert_eq!(super::common::encoded(&codec(), &parsed.into_request(run.cx().clone())), body);
    }
}
