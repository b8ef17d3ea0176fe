//! Properties of every answer.

use agent_core::{ModelResponse, model::MessageBuilder};
use agent_llm::{Codec, RequestReader, conformance::event_stream};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{body, call, codec, common::streamed, message, read, reasoning, words};

/// An item, and the texts that it is streamed as.
#[derive(Clone, Debug)]
enum Said {
    Thought(Vec<Vec<String>>),
    Text(Vec<String>),
    Call(Vec<String>),
    Search,
}

fn said() -> impl Strategy<Value = Vec<Said>> {
    let pieces = || prop::collection::vec("[a-zä😀\"\\\\\n ]{1,4}", 1..4);
    let one = prop_oneof![
        prop::collection::vec(pieces(), 0..3).prop_map(Said::Thought),
        pieces().prop_map(Said::Text),
        pieces().prop_map(Said::Call),
        Just(Said::Search),
    ];
    prop::collection::vec(one, 1..5)
}

/// Events that a server omits.
#[derive(Clone, Copy, Debug)]
struct Manner {
    begins: bool,
    ends: bool,
    repeats: bool,
}

fn item(at: usize, said: &Said) -> Value {
    let id = format!("i{at}");
    match said {
        Said::Thought(parts) => {
            let parts: Vec<_> = parts.iter().map(|pieces| pieces.concat()).collect();
            reasoning(&id, &parts.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Said::Text(pieces) => message(&id, &pieces.concat()),
        Said::Call(pieces) => call(&id, "look", &pieces.concat()),
        Said::Search => json!({"type": "web_search_call", "id": id, "status": "completed"}),
    }
}

fn events(at: usize, said: &Said, manner: Manner) -> Vec<Value> {
    let whole = item(at, said);
    let mut begun = whole.clone();
    for (name, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
        if begun.get(name).is_some() {
            begun[name] = empty;
        }
    }
    let delta = |kind: &str, nth: usize, delta: &String| {
        let kind = format!("response.{kind}.delta");
        json!({"type": kind, "output_index": at, "content_index": nth, "summary_index": nth, "delta": delta})
    };
    let mut events = Vec::new();
    if manner.begins {
        events.push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
    }
    match said {
        Said::Thought(parts) => {
            for (nth, pieces) in parts.iter().enumerate() {
                events.extend(pieces.iter().map(|piece| delta("reasoning_summary_text", nth, piece)));
            }
        }
        Said::Text(pieces) => events.extend(pieces.iter().map(|piece| delta("output_text", 0, piece))),
        Said::Call(pieces) => events.extend(pieces.iter().map(|piece| delta("function_call_arguments", 0, piece))),
        Said::Search => {}
    }
    if manner.ends {
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": whole}));
    }
    events
}

fn manner() -> impl Strategy<Value = Manner> {
    let all = (any::<bool>(), any::<bool>(), any::<bool>());
    // A server must identify its items in at least one event.
    all.prop_map(|(begins, ends, repeats)| Manner { begins: begins || !(ends || repeats), ends, repeats })
}

fn heard(events: &[Value]) -> ModelResponse {
    let stream = event_stream(events.iter().map(Value::to_string));
    let (response, chunks) = streamed(&codec(), &stream).expect("an answer");
    let mut builder = MessageBuilder::default();
    chunks.iter().for_each(|chunk| builder.push(chunk));
    assert_eq!(builder.into_blocks(), response.message.blocks(), "{chunks:#?}");
    response
}

fn end(output: &Value) -> Value {
    json!({"type": "response.completed", "response": serde_json::from_str::<Value>(&body(output)).expect("JSON")})
}

proptest! {
    #[test]
    fn a_streamed_message_is_the_one_that_would_have_come_whole(said in said(), manner in manner()) {
        let items: Vec<_> = said.iter().enumerate().map(|(at, said)| item(at, said)).collect();
        let mut events: Vec<_> = said.iter().enumerate().flat_map(|(at, said)| events(at, said, manner)).collect();
        events.push(end(&if manner.repeats { json!(items) } else { json!([]) }));
        let (streamed, whole) = (heard(&events), read(&json!(items)));
        prop_assert_eq!(words(streamed.message.blocks()), words(whole.message.blocks()));
        if manner.ends || manner.repeats {
            prop_assert_eq!(streamed, whole);
        }
    }

    #[test]
    fn events_in_any_order_make_one_message_for_all(
        said in said(), manner in manner(), order in any::<prop::sample::Index>(), repeats in 0..3_usize, seed: u64,
    ) {
        let mut events: Vec<_> = said.iter().enumerate().flat_map(|(at, said)| events(at, said, manner)).collect();
        for step in 0..repeats.min(events.len()) {
            let at = order.index(events.len());
            let moved = events.remove(at);
            events.insert((seed as usize).wrapping_add(step) % (events.len() + 1), moved.clone());
            events.push(moved);
        }
        let items: Vec<_> = said.iter().enumerate().map(|(at, said)| item(at, said)).collect();
        events.push(end(&if manner.repeats { json!(items) } else { json!([]) }));
        let message = heard(&events).message;
        let mut unheard = codec().decoder(false);
        for event in &events {
            unheard.frame(&event.to_string(), &mut Vec::new()).expect("a frame");
        }
        prop_assert_eq!(unheard.finish(&mut Vec::new()).expect("an answer").message, message);
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = codec().decode(&body);
        let _ = codec().decode_request(&body);
        let _ = streamed(&codec(), &format!("data: {}\n\n", String::from_utf8_lossy(&body)));
    }
}
