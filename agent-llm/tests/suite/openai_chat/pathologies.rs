//! Malformed streams that some servers send.

use agent_core::{AssistantMessage, Block, Chunk, ErrorKind, ModelResponse, model::MessageBuilder};
use agent_llm::Codec;
use serde_json::{Value, json};

use super::common::{DONE, codec, completion, delta, finish, sent_back, streamed};

/// Decodes these deltas; response and chunks are the same message, and each of its blocks ends
/// once.
fn read(deltas: &[&str]) -> (ModelResponse, Vec<Chunk>) {
    let body = deltas.iter().map(|piece| delta(piece)).collect::<String>() + &finish("stop") + DONE;
    let (response, chunks) = streamed(&codec(), &body).expect("an answer");
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    assert_eq!(heard.into_blocks(), response.message.blocks());
    let ended = chunks.iter().filter_map(|chunk| if let Chunk::End { index } = chunk { Some(*index) } else { None });
    let mut ended: Vec<_> = ended.collect();
    ended.sort_unstable();
    assert_eq!(ended, (0..).take(response.message.blocks().len()).collect::<Vec<_>>());
    (response, chunks)
}

fn calls(message: &AssistantMessage) -> Vec<(&str, &str, &str)> {
    message.calls().map(|c| (&*c.id, &*c.name, &*c.arguments)).collect()
}

fn begun(index: u32, id: &str, name: &str) -> Chunk {
    Chunk::ToolCall { index, id: id.into(), name: name.into() }
}

fn arguments(index: u32, delta: &str) -> Chunk {
    Chunk::Arguments { index, delta: delta.into() }
}

fn back(message: &AssistantMessage) -> Value {
    serde_json::from_str(&sent_back(&codec(), message)).expect("JSON")
}

#[test]
fn arguments_before_the_name_wait_for_it() {
    let (response, chunks) = read(&[
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"arguments":"{\"x\""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":":1"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#,
    ]);
    assert_eq!(calls(&response.message), [("c", "f", r#"{"x":1}"#)]);
    assert_eq!(chunks, [begun(0, "c", "f"), arguments(0, r#"{"x":1"#), arguments(0, "}"), Chunk::End { index: 0 }]);
}

#[test]
fn the_id_and_the_name_may_come_apart_in_either_order() {
    let id = r#"{"tool_calls":[{"index":0,"id":"c"}]}"#;
    let name = r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#;
    let rest = r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#;
    for deltas in [[id, name, rest], [name, id, rest], [id, rest, name], [rest, name, id]] {
        let (response, chunks) = read(&deltas);
        assert_eq!(calls(&response.message), [("c", "f", "{}")], "{deltas:?}");
        assert_eq!(chunks, [begun(0, "c", "f"), arguments(0, "{}"), Chunk::End { index: 0 }], "{deltas:?}");
    }
}

#[test]
fn a_call_that_never_gets_a_name_is_one_of_an_unknown_tool() {
    let (response, chunks) =
        read(&[r#"{"tool_calls":[{"index":0,"id":"c","function":{"arguments":"{}"},"extra":"x"}]}"#]);
    assert_eq!(calls(&response.message), [("c", "unknown", "{}")]);
    assert_eq!(chunks[0], begun(0, "c", "unknown"));
    assert_eq!(back(&response.message)["tool_calls"][0]["function"], json!({"name": "unknown", "arguments": "{}"}));
    let whole = r#"{"content":null,"tool_calls":[{"id":"c","function":{"name":"","arguments":"{}"}}]}"#;
    let whole = codec().decode(completion(whole, "stop").as_bytes()).expect("an answer").message;
    assert_eq!(calls(&whole), [("c", "unknown", "{}")]);
    assert_eq!(back(&whole)["tool_calls"][0]["function"]["name"], "unknown", "no provider takes an empty name");
}

#[test]
fn a_call_that_never_gets_an_id_is_given_one() {
    let (response, chunks) = read(&[
        r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"tool_calls":[{"index":1,"function":{"name":"g","arguments":"{}"}}]}"#,
    ]);
    assert_eq!(calls(&response.message), [("call_r1_0", "f", "{}"), ("call_r1_1", "g", "{}")]);
    assert_eq!(chunks[0], begun(0, "call_r1_0", "f"));
}

#[test]
fn a_server_may_send_both_kinds_of_call_and_mean_one() {
    let call =
        r#"{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"custom":{"name":"","input":""}}"#;
    let whole = completion(&format!(r#"{{"tool_calls":[{call}]}}"#), "stop");
    let (streamed, _) = read(&[&format!(r#"{{"tool_calls":[{call}]}}"#)]);
    let whole = codec().decode(whole.as_bytes()).expect("an answer");
    for message in [whole.message, streamed.message] {
        assert_eq!(calls(&message), [("c", "f", "{}")]);
        assert_eq!(back(&message)["tool_calls"][0], serde_json::from_str::<Value>(call).expect("JSON"));
    }
}

#[test]
fn reasoning_ends_where_text_or_a_call_or_a_refusal_begins() {
    let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
    for next in [r#"{"content":"a"}"#, call, r#"{"refusal":"no"}"#] {
        let (response, chunks) = read(&[r#"{"reasoning":"hm"}"#, next]);
        assert!(matches!(&response.message.blocks()[0], Block::Reasoning(r) if r.text == "hm"));
        let ended = chunks.iter().position(|chunk| *chunk == Chunk::End { index: 0 }).expect("it ends");
        let begun = chunks.iter().position(|chunk| !matches!(chunk, Chunk::Reasoning { .. } | Chunk::End { index: 0 }));
        assert!(begun.is_none_or(|begun| ended < begun), "{next}: {chunks:?}");
    }
}

#[test]
fn reasoning_that_went_on_alone_is_a_message() {
    let (response, _) = read(&[r#"{"role":"assistant","reasoning_content":"h"}"#, r#"{"reasoning_content":"m"}"#]);
    assert!(matches!(response.message.blocks(), [Block::Reasoning(r)] if r.text == "hm"));
    assert!(!response.message.is_empty() && !response.message.has_text());
    assert_eq!(back(&response.message), json!({"role": "assistant", "content": null, "reasoning_content": "hm"}));
    let told_elsewhere = AssistantMessage::new(response.message.blocks().to_vec());
    assert_eq!(back(&told_elsewhere), json!({"role": "assistant", "content": ""}));
}

#[test]
fn details_of_reasoning_that_was_edited_do_not_tell_what_it_was() {
    let details = r#"[{"type":"reasoning.text","index":0,"text":"a secret","signature":"s"}]"#;
    let (response, _) =
        read(&[&format!(r#"{{"reasoning":"a secret","reasoning_details":{details}}}"#), r#"{"content":"a"}"#]);
    let mut message = response.message;
    message.blocks_mut();
    assert_eq!(back(&message)["reasoning_details"], serde_json::from_str::<Value>(details).expect("JSON"));
    let Block::Reasoning(reasoning) = &mut message.blocks_mut()[0] else { panic!("reasoning") };
    reasoning.text = "***".into();
    assert_eq!(back(&message), json!({"role": "assistant", "content": "a", "reasoning": "***"}));
}

#[test]
fn a_stream_of_nothing_is_an_error() {
    for (body, kind) in [
        (String::new(), ErrorKind::Truncated),
        (DONE.to_owned(), ErrorKind::Protocol),
        (r#"data: {"choices":[]}"#.to_owned() + "\n\n" + DONE, ErrorKind::Protocol),
        (
            r#"data: {"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"stop"}]}"#.to_owned() + "\n\n",
            ErrorKind::Truncated,
        ),
    ] {
        let error = streamed(&codec(), &body).expect_err(&body);
        assert_eq!((error.kind(), error.is_retryable()), (kind, true), "{body}");
    }
    let empty = read(&[r#"{"role":"assistant","content":""}"#]).0;
    assert!(empty.message.is_empty(), "an answer that says nothing is one all the same");
}
