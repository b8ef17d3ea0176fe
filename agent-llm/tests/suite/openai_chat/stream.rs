//! Decoding of streamed answers.

use agent_core::{Block, Chunk, ErrorKind, FinishReason, ModelResponse, model::MessageBuilder};
use agent_llm::{Codec, Progress};
use serde_json::{Value, json};

use super::common::{DONE, codec, delta, finish, streamed};

fn read(body: &str) -> (ModelResponse, Vec<Chunk>) {
    streamed(&codec(), body).expect("an answer")
}

fn deltas(pieces: &[&str]) -> String {
    pieces.iter().map(|piece| delta(piece)).collect::<String>() + &finish("stop") + DONE
}

fn raw(response: &ModelResponse) -> Value {
    response.message.raw().expect("raw").to_value()
}

fn calls(response: &ModelResponse) -> Vec<(&str, &str, &str)> {
    response.message.calls().map(|c| (&*c.id, &*c.name, &*c.arguments)).collect()
}

fn text(index: u32, delta: &str) -> Chunk {
    Chunk::Text { index, delta: delta.into() }
}

fn thought(index: u32, delta: &str) -> Chunk {
    Chunk::Reasoning { index, delta: delta.into() }
}

fn begun(index: u32, id: &str, name: &str) -> Chunk {
    Chunk::ToolCall { index, id: id.into(), name: name.into() }
}

fn arguments(index: u32, delta: &str) -> Chunk {
    Chunk::Arguments { index, delta: delta.into() }
}

fn end(index: u32) -> Chunk {
    Chunk::End { index }
}

#[test]
fn reasoning_then_text_then_calls() {
    let (response, chunks) = read(&deltas(&[
        r#"{"role":"assistant","content":""}"#,
        r#"{"reasoning_content":"h"}"#,
        r#"{"reasoning_content":"m"}"#,
        r#"{"content":"a"}"#,
        r#"{"content":"b"}"#,
        r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
    ]));
    let expected = [
        thought(0, "h"),
        thought(0, "m"),
        end(0),
        text(1, "a"),
        text(1, "b"),
        end(1),
        begun(2, "c", "f"),
        arguments(2, r#"{"x""#),
        arguments(2, ":1}"),
        end(2),
    ];
    assert_eq!(chunks, expected);
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": r#"{"x":1}"#}});
    let whole = json!({"role": "assistant", "content": "ab", "reasoning_content": "hm", "tool_calls": [call]});
    assert_eq!(raw(&response), whole);
    assert_eq!(response.finish, FinishReason::ToolCalls, "although the server says stop");
}

#[test]
fn calls_come_in_many_ways() {
    let expected = vec![("a", "f", r#"{"x":1}"#), ("b", "g", r#"{"y":2}"#)];
    let whole = |index: &str, id: &str, name: &str, arguments: &str| {
        format!(r#"{{{index}"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#)
    };
    let (f, g) = (r#"{\"x\":1}"#, r#"{\"y\":2}"#);
    let at = |n: u32| format!(r#""index":{n},"#);
    let ways: [(&str, Vec<String>); 6] = [
        ("whole, both in one delta", vec![format!("{},{}", whole(&at(0), "a", "f", f), whole(&at(1), "b", "g", g))]),
        ("whole, without an index", vec![whole("", "a", "f", f), whole("", "b", "g", g)]),
        ("whole, with the same index", vec![whole(&at(0), "a", "f", f), whole(&at(0), "b", "g", g)]),
        (
            "mixed",
            vec![
                whole(&at(3), "a", "f", ""),
                whole(&at(7), "b", "g", ""),
                r#"{"index":3,"function":{"arguments":"{\"x\":"}}"#.into(),
                r#"{"index":7,"function":{"arguments":"{\"y\":2"}}"#.into(),
                r#"{"index":3,"function":{"arguments":"1}"}}"#.into(),
                r#"{"index":7,"function":{"arguments":"}"}}"#.into(),
            ],
        ),
        (
            "arguments, then the name, then the id",
            vec![
                format!(r#"{{"index":0,"function":{{"arguments":"{f}"}}}}"#),
                r#"{"index":0,"function":{"name":"f"}}"#.into(),
                r#"{"index":0,"id":"a"}"#.into(),
                whole("", "b", "g", g),
            ],
        ),
        (
            "id and name again with every piece",
            vec![
                whole(&at(0), "a", "f", r#"{\"x\""#),
                whole(&at(0), "a", "f", ":1}"),
                whole(&at(1), "b", "g", r#"{\"y\":"#),
                whole(&at(1), "b", "g", "2}"),
            ],
        ),
    ];
    for (way, pieces) in ways {
        let pieces: Vec<String> = pieces.iter().map(|piece| format!(r#"{{"tool_calls":[{piece}]}}"#)).collect();
        let (response, chunks) = read(&deltas(&pieces.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(calls(&response), expected, "{way}");
        let mut heard = MessageBuilder::default();
        chunks.iter().for_each(|chunk| heard.push(chunk));
        assert_eq!(heard.into_blocks(), response.message.blocks(), "{way}");
    }
}

#[test]
fn a_call_has_its_place_where_it_can_be_named() {
    let (response, chunks) = read(&deltas(&[
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}"#,
        r#"{"content":"a"}"#,
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f"}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#,
    ]));
    assert_eq!(
        chunks,
        [text(0, "a"), end(0), begun(1, "c", "f"), arguments(1, "{"), arguments(1, "}"), end(1)],
        "what is heard is in the order in which it is kept"
    );
    assert!(matches!(response.message.blocks(), [Block::Text(_), Block::ToolCall(_)]));
}

#[test]
fn calls_without_ids_are_named() {
    let call = |name: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,"id":"","function":{{"name":"{name}","arguments":"{{}}"}}}}]}}"#)
    };
    let (response, chunks) = read(&deltas(&[&call("f"), &call("g")]));
    assert_eq!(calls(&response), [("call_r1_0", "f", "{}"), ("call_r1_1", "g", "{}")]);
    assert!(chunks.contains(&begun(1, "call_r1_1", "g")), "{chunks:?}");
    assert_eq!(raw(&response)["tool_calls"][1]["id"], "call_r1_1");
    assert!(!response.message.is_edited());
}

#[test]
fn vendor_fields_are_put_together_too() {
    let (response, chunks) = read(&deltas(&[
        r#"{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","index":0,"text":"h"}]}"#,
        r#"{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","index":0,"text":"m"}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s"}]}"#,
        r#"{"content":"a","channel":"final","vendor":{"n":1}}"#,
        r#"{"content":"b","channel":"final","vendor":{"n":2}}"#,
    ]));
    let details = json!([{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"}]);
    let whole = json!({
        "role": "assistant", "content": "ab", "reasoning": "hm", "reasoning_details": details,
        "channel": "final", "vendor": {"n": 2},
    });
    assert_eq!(raw(&response), whole);
    let Block::Reasoning(reasoning) = &response.message.blocks()[0] else { panic!("reasoning first") };
    assert_eq!((reasoning.text.as_str(), reasoning.signature.as_deref()), ("hm", Some("s")));
    let spoken = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Reasoning { .. })).count();
    assert_eq!(spoken, 2, "not twice, though it came in two spellings");
    let form = Chunk::Block { index: 0, block: response.message.blocks()[0].clone() };
    assert!(chunks.contains(&form), "what its provider needs back is told");
}

#[test]
fn a_content_in_parts_is_put_together() {
    let (response, chunks) = read(&deltas(&[
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}]}]}"#,
        r#"{"content":[{"type":"text","text":"a"}]}"#,
        r#"{"content":"b"}"#,
    ]));
    assert_eq!(response.message.text(), "ab");
    assert!(matches!(&response.message.blocks()[0], Block::Reasoning(r) if r.text == "hm"));
    assert_eq!(chunks[..5], [thought(0, "h"), thought(0, "m"), end(0), text(1, "a"), text(1, "b")]);
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    assert_eq!(heard.into_blocks(), response.message.blocks());
}

#[test]
fn usage_comes_in_an_event_of_its_own_or_with_others() {
    let own = r#"data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}"#;
    let body = delta(r#"{"content":"a"}"#) + &finish("stop") + own + "\n\n" + DONE;
    assert_eq!(read(&body).0.usage.total(), 15);
    let (response, _) = read(&deltas(&[r#"{"content":"a"}"#]));
    assert_eq!(response.usage.calls, 0, "nobody said");
}

#[test]
fn half_a_character_does_not_spoil_the_stream() {
    let (response, _) = read(&deltas(&[r#"{"content":"a\ud83d"}"#, r#"{"content":"\ude00b"}"#]));
    assert_eq!(response.message.text(), "a\u{fffd}\u{fffd}b");
}

#[test]
fn only_the_first_choice_is_heard() {
    let other = r#"data: {"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"length"}]}"#;
    let body = delta(r#"{"content":"a"}"#) + other + "\n\n" + &finish("stop");
    let (response, _) = read(&body);
    assert_eq!((response.message.text().as_str(), response.finish), ("a", FinishReason::Stop));
}

#[test]
fn a_cut_stream_is_truncated_and_not_an_answer() {
    let said = delta(r#"{"content":"a"}"#);
    for body in ["", ": only a comment\n\n", &said, &(said.clone() + &finish("stop")[..40])] {
        let (mut decoder, mut chunks) = (codec().decoder(true), Vec::new());
        let mut splitter = agent_llm::SseSplitter::default();
        splitter.push(body.as_bytes(), |e| decoder.frame(e.data, &mut chunks)).expect("whole events");
        assert_eq!(decoder.progress(), Progress::Open, "{body}");
        let error = decoder.finish(&mut chunks).expect_err(body);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
    }
}

#[test]
fn either_sign_of_the_end_is_enough() {
    let said = delta(r#"{"content":"a"}"#);
    assert_eq!(read(&(said.clone() + DONE)).0.message.text(), "a");
    assert_eq!(read(&(said + &finish("length"))).0.finish, FinishReason::Length);
    let error = streamed(&codec(), DONE).expect_err("an end of nothing");
    assert_eq!(error.kind(), ErrorKind::Protocol);
}

#[test]
fn an_error_inside_the_stream_is_the_providers() {
    let overloaded = r#"data: {"error":{"type":"overloaded_error","message":"busy"}}"#;
    let limited = r#"data: {"choices":[{"index":0,"delta":{}}],"error":{"code":429,"message":"slow down"}}"#;
    for (event, kind) in [(overloaded, ErrorKind::Overloaded), (limited, ErrorKind::RateLimited)] {
        let error = streamed(&codec(), &(delta(r#"{"content":"a"}"#) + event + "\n\n")).expect_err(event);
        assert_eq!((error.kind(), error.is_retryable()), (kind, true));
    }
    let garbage = streamed(&codec(), "data: {oops\n\n").expect_err("garbage");
    assert_eq!(garbage.kind(), ErrorKind::Protocol);
}

#[test]
fn without_a_listener_the_answer_is_the_same_and_no_chunks_are_made() {
    let body = deltas(&[r#"{"reasoning":"hm"}"#, r#"{"content":"a"}"#]);
    let (mut decoder, mut chunks) = (codec().decoder(false), Vec::new());
    let mut splitter = agent_llm::SseSplitter::default();
    splitter.push(body.as_bytes(), |e| decoder.frame(e.data, &mut chunks)).expect("whole events");
    assert_eq!(decoder.finish(&mut chunks).expect("an answer"), read(&body).0);
    assert!(chunks.is_empty());
}
