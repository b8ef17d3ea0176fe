//! Decoding of streamed answers.

use agent_core::{Block, Chunk, ErrorKind, FinishReason, model::MessageBuilder};
use agent_llm::{Codec, Progress};
use serde_json::{Value, json};

use super::{codec, common::streamed, delta, event, input_delta, raw, read_stream, start, stop, stream_of, text_delta};

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

fn thinking_delta(index: u32, thinking: &str) -> Value {
    delta(index, json!({"type": "thinking_delta", "thinking": thinking}))
}

fn signature_delta(index: u32, signature: &str) -> Value {
    delta(index, json!({"type": "signature_delta", "signature": signature}))
}

fn empty_text() -> Value {
    json!({"type": "text", "text": ""})
}

fn empty_thinking() -> Value {
    json!({"type": "thinking", "thinking": "", "signature": ""})
}

fn tool_use(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

/// Returns the content of the message that these events produce. Its chunks produce the same
/// blocks, and each block ends once.
fn content(events: &[Value]) -> Value {
    let (response, chunks) = read_stream(events);
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    let blocks = response.message.blocks();
    assert_eq!(heard.into_blocks(), blocks);
    let mut ended: Vec<u32> =
        chunks.iter().filter_map(|c| if let Chunk::End { index } = c { Some(*index) } else { None }).collect();
    ended.sort_unstable();
    assert_eq!(ended, (0..blocks.len() as u32).collect::<Vec<_>>());
    raw(&response.message)["content"].clone()
}

#[test]
fn thinking_then_text_then_a_call() {
    let (response, chunks) = read_stream(&[
        start(0, empty_thinking()),
        thinking_delta(0, "h"),
        thinking_delta(0, "m"),
        signature_delta(0, "s1"),
        signature_delta(0, "s2"),
        stop(0),
        start(1, empty_text()),
        text_delta(1, "a"),
        text_delta(1, "b"),
        stop(1),
        start(2, tool_use("c", "f")),
        input_delta(2, ""),
        input_delta(2, r#"{"x""#),
        input_delta(2, ": 1}"),
        stop(2),
    ]);
    let [thinking, _, call] = response.message.blocks() else { panic!("three blocks") };
    let expected = [
        thought(0, "h"),
        thought(0, "m"),
        Chunk::Block { index: 0, block: thinking.clone() },
        end(0),
        text(1, "a"),
        text(1, "b"),
        end(1),
        begun(2, "c", "f"),
        arguments(2, r#"{"x""#),
        arguments(2, ": 1}"),
        end(2),
    ];
    assert_eq!(chunks, expected);
    let Block::ToolCall(call) = call else { panic!("the call") };
    assert_eq!(call.arguments, r#"{"x": 1}"#);
    let whole = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s1s2"},
        {"type": "text", "text": "ab"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}},
    ]);
    assert_eq!(raw(&response.message)["content"], whole);
    assert_eq!((response.id.as_deref(), response.usage.total()), (Some("msg_1"), 15));
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn a_stream_makes_what_the_whole_body_makes() {
    let events = [
        start(0, json!({"type": "redacted_thinking", "data": "d"})),
        stop(0),
        start(1, json!({"type": "text", "text": "", "citations": []})),
        delta(1, json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "q"}})),
        text_delta(1, "a"),
        stop(1),
        start(2, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        input_delta(2, r#"{"q":1}"#),
        stop(2),
        start(3, json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]})),
        stop(3),
        start(4, json!({"type": "compaction", "content": null})),
        delta(4, json!({"type": "compaction_delta", "content": "sum"})),
        delta(4, json!({"type": "compaction_delta", "content": "mary"})),
        stop(4),
        start(5, json!({"type": "of_tomorrow", "x": 1})),
        delta(5, json!({"type": "of_tomorrow_delta", "y": [1], "text": "t"})),
        stop(5),
    ];
    let whole = json!([
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "a", "citations": [{"type": "char_location", "cited_text": "q"}]},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]},
        {"type": "compaction", "content": "summary"},
        {"type": "of_tomorrow", "x": 1, "y": [1], "text": "t"},
    ]);
    assert_eq!(content(&events), whole);
    let (streamed, _) = read_stream(&events);
    let answered = codec().decode(super::answer(&whole, "end_turn").as_bytes()).expect("an answer");
    let json = |response| -> Value {
        serde_json::from_str(&serde_json::to_string(response).expect("serialises")).expect("JSON")
    };
    assert_eq!(json(&streamed), json(&answered), "details and all");
}

#[test]
fn what_is_said_beside_the_message_is_kept() {
    let message =
        json!({"id": "m", "model": "x", "container": null, "usage": {"input_tokens": 9, "service_tier": "s"}});
    let stop = json!({"stop_reason": "refusal", "stop_sequence": null, "stop_details": {"type": "refusal"}});
    let usage = json!({"output_tokens": 4, "service_tier": null});
    let body: String = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "message_delta", "delta": stop, "usage": usage, "context_management": {"applied_edits": []}}),
        json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"n": 1}}),
    ]
    .iter()
    .map(event)
    .collect();
    let (response, _) = streamed(&codec(), &body).expect("an answer");
    assert_eq!(response.finish, FinishReason::ContentFilter);
    let wanted = json!({
        "stop_reason": "refusal", "stop_details": {"type": "refusal"}, "context_management": {"applied_edits": []},
        "amazon-bedrock-invocationMetrics": {"n": 1},
        "usage": {"input_tokens": 9, "output_tokens": 4, "service_tier": "s"},
    });
    assert_eq!(Value::Object(response.details), wanted);
    assert_eq!((response.usage.input, response.usage.output), (9, 4));
}

#[test]
fn blocks_may_come_mixed() {
    let mixed = content(&[
        start(0, tool_use("a", "f")),
        start(1, tool_use("b", "g")),
        input_delta(1, "{\"y\":"),
        input_delta(0, "{\"x\":1"),
        input_delta(1, "2}"),
        stop(1),
        input_delta(0, "}"),
        stop(0),
    ]);
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    assert_eq!(mixed, json!([call("a", "f", json!({"x": 1})), call("b", "g", json!({"y": 2}))]));
}

#[test]
fn a_delta_before_its_block_begins_it() {
    let thinking =
        [thinking_delta(0, "h"), start(0, empty_thinking()), thinking_delta(0, "m"), signature_delta(0, "s")];
    assert_eq!(content(&thinking), json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]));
    assert_eq!(content(&[text_delta(3, "a"), stop(3)]), json!([{"type": "text", "text": "a"}]));
    let citation = delta(0, json!({"type": "citations_delta", "citation": {"n": 1}}));
    let cited = json!([{"type": "text", "text": "a", "citations": [{"n": 1}]}]);
    assert_eq!(content(&[citation, text_delta(0, "a")]), cited);
}

#[test]
fn arguments_before_their_call_are_spoken_once_it_is_known() {
    let (response, chunks) =
        read_stream(&[input_delta(0, "{\"x\""), start(0, tool_use("real", "f")), input_delta(0, ":1}"), stop(0)]);
    assert_eq!(chunks, [begun(0, "real", "f"), arguments(0, "{\"x\""), arguments(0, ":1}"), end(0)]);
    assert_eq!(response.message.calls().count(), 1);
    let server = start(0, json!({"type": "server_tool_use", "id": "s", "name": "f", "input": {}}));
    let early = content(&[input_delta(0, "{\"x\":1}"), server, stop(0)]);
    assert_eq!(early, json!([{"type": "server_tool_use", "id": "s", "name": "f", "input": {"x": 1}}]));
}

#[test]
fn a_call_that_never_begins_is_given_an_id() {
    let (response, chunks) = read_stream(&[input_delta(0, "{}")]);
    assert_eq!(chunks, [begun(0, "call_msg_1_0", "unknown"), arguments(0, "{}"), end(0)]);
    assert_eq!(raw(&response.message)["content"][0]["id"], "call_msg_1_0");
    let unnamed = content(&[start(0, tool_use("", "f")), input_delta(0, "{}"), stop(0)]);
    assert_eq!(unnamed, json!([tool_use("call_msg_1_0", "f")]));
}

#[test]
fn a_block_that_begins_again_is_one_block() {
    let call = json!([{"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}]);
    for again in ["", "c"] {
        let name = if again.is_empty() { "" } else { "f" };
        let events = [
            start(0, tool_use("c", "f")),
            input_delta(0, "{\"x\""),
            start(0, tool_use(again, name)),
            input_delta(0, ":1}"),
        ];
        assert_eq!(content(&events), call, "again as '{again}'");
    }
    let late =
        [start(0, tool_use("", "")), input_delta(0, "{\"x\""), start(0, tool_use("c", "f")), input_delta(0, ":1}")];
    assert_eq!(content(&late), call, "an id that came late");
}

#[test]
fn an_index_that_is_used_again_is_another_block() {
    let both = json!([tool_use("a", "f"), tool_use("b", "g")]);
    assert_eq!(content(&[start(0, tool_use("a", "f")), stop(0), start(0, tool_use("b", "g")), stop(0)]), both);
    assert_eq!(content(&[start(0, tool_use("a", "f")), start(0, tool_use("b", "g"))]), both, "and without an end");
    let kinds =
        content(&[start(0, empty_thinking()), thinking_delta(0, "hm"), signature_delta(0, "s"), text_delta(0, "a")]);
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    assert_eq!(kinds, json!([thinking, {"type": "text", "text": "a"}]));
}

#[test]
fn what_does_not_end_ends_with_the_message() {
    let open = [start(0, empty_text()), text_delta(0, "a"), start(1, tool_use("c", "f"))];
    assert_eq!(content(&open), json!([{"type": "text", "text": "a"}, tool_use("c", "f")]));
    let (_, chunks) = read_stream(&open);
    assert_eq!(chunks, [text(0, "a"), begun(1, "c", "f"), end(0), arguments(1, "{}"), end(1)]);
}

#[test]
fn empty_texts_are_left_out() {
    let events = [start(0, empty_text()), stop(0), start(1, tool_use("c", "f")), stop(1)];
    assert_eq!(content(&events), json!([tool_use("c", "f")]));
    assert_eq!(read_stream(&events).1, [begun(0, "c", "f"), arguments(0, "{}"), end(0)]);
}

#[test]
fn arguments_may_come_with_the_start_or_be_invalid() {
    let at_once = start(0, json!({"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}));
    assert_eq!(content(&[at_once.clone(), stop(0)])[0]["input"], json!({"x": 1}));
    assert_eq!(read_stream(&[at_once, stop(0)]).1[1], arguments(0, r#"{"x":1}"#));
    let cut = [start(0, tool_use("c", "f")), input_delta(0, "{\"x\": "), stop(0)];
    assert_eq!(content(&cut)[0]["input"], json!({"INVALID_JSON": "{\"x\": "}), "as the API takes it back");
    let (response, _) = read_stream(&cut);
    assert_eq!(response.message.calls().next().expect("a call").arguments, "{\"x\": ", "as the model wrote it");
}

#[test]
fn odd_events_are_tolerated() {
    let said = [start(0, empty_text()), text_delta(0, "a"), stop(0)];
    for odd in [
        json!({"type": "ping"}),
        json!({"type": "message_start", "message": null}),
        json!({"type": "content_block_start", "index": 0, "content_block": null}),
        json!({"type": "content_block_delta", "index": 0, "delta": null}),
        json!({"type": "content_block_stop", "index": 7}),
        json!({"type": "vendor_event", "x": 1}),
    ] {
        let events: Vec<_> = said.iter().flat_map(|event| [odd.clone(), event.clone()]).collect();
        assert_eq!(content(&events), json!([{"type": "text", "text": "a"}]), "{odd}");
    }
    let nothing = event(&json!({"type": "message_start", "message": null}));
    let said = stream_of(&said);
    let (_, after_start) = said.split_once("\n\n").expect("events");
    let body = nothing + after_start + "data: [DONE]\n\n";
    assert_eq!(streamed(&codec(), &body).expect("an answer").0.message.text(), "a", "a start without a message");
}

#[test]
fn a_cut_stream_is_truncated_and_not_an_answer() {
    let whole = stream_of(&[start(0, empty_text()), text_delta(0, "a"), stop(0)]);
    let events: Vec<&str> = whole.split_inclusive("\n\n").collect();
    for length in 0..events.len() {
        let cut = events[..length].concat();
        let (mut decoder, mut chunks) = (codec().decoder(true), Vec::new());
        let mut splitter = agent_llm::SseSplitter::default();
        splitter.push(cut.as_bytes(), |e| decoder.frame(e.data, &mut chunks)).expect("whole events");
        if length + 1 == events.len() {
            assert_eq!(decoder.progress(), Progress::Complete, "only the last event is missing");
            continue;
        }
        assert_eq!(decoder.progress(), Progress::Open, "{cut}");
        let error = decoder.finish(&mut chunks).expect_err("cut");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
    }
    let error = streamed(&codec(), &event(&json!({"type": "message_stop"}))).expect_err("an end of nothing");
    assert_eq!(error.kind(), ErrorKind::Protocol);
}

#[test]
fn an_error_inside_the_stream_is_the_providers() {
    for (kind, wanted) in [
        ("overloaded_error", ErrorKind::Overloaded),
        ("rate_limit_error", ErrorKind::RateLimited),
        ("api_error", ErrorKind::Provider),
        ("invalid_request_error", ErrorKind::InvalidRequest),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": "why"}});
        let body = stream_of(&[start(0, empty_text()), text_delta(0, "a"), error]);
        let error = streamed(&codec(), &body).expect_err(kind);
        assert_eq!((error.kind(), error.message()), (wanted, "why"));
    }
    for garbage in ["{oops", "[]", "7", "{}", r#"{"choices":[]}"#] {
        let error = streamed(&codec(), &format!("data: {garbage}\n\n")).expect_err(garbage);
        assert_eq!(error.kind(), ErrorKind::Protocol, "{garbage}");
    }
}

#[test]
fn any_cut_of_the_bytes_gives_the_same_answer() {
    let body = stream_of(&[
        start(0, empty_text()),
        text_delta(0, "äß😀\n\"é"),
        stop(0),
        start(1, tool_use("c", "f")),
        input_delta(1, "{\"ü\":1}"),
        stop(1),
    ]);
    let read = |pieces: &[&[u8]]| {
        let (mut decoder, mut chunks) = (codec().decoder(true), Vec::new());
        let mut splitter = agent_llm::SseSplitter::default();
        for piece in pieces {
            splitter.push(piece, |e| decoder.frame(e.data, &mut chunks)).expect("whole events");
        }
        (decoder.finish(&mut chunks).expect("an answer"), chunks)
    };
    let whole = read(&[body.as_bytes()]);
    for at in 0..body.len() {
        let (left, right) = body.as_bytes().split_at(at);
        assert_eq!(read(&[left, right]), whole, "cut at {at}");
    }
}

#[test]
fn without_a_listener_the_answer_is_the_same_and_no_chunks_are_made() {
    let body = stream_of(&[
        start(0, empty_thinking()),
        thinking_delta(0, "hm"),
        text_delta(1, "a"),
        input_delta(2, "{}"),
        start(3, json!({"type": "of_tomorrow"})),
    ]);
    let (mut decoder, mut chunks) = (codec().decoder(false), Vec::new());
    let mut splitter = agent_llm::SseSplitter::default();
    splitter.push(body.as_bytes(), |e| decoder.frame(e.data, &mut chunks)).expect("whole events");
    assert_eq!(decoder.finish(&mut chunks).expect("an answer"), streamed(&codec(), &body).expect("an answer").0);
    assert!(chunks.is_empty());
}

#[test]
fn what_was_heard_is_kept_whatever_else_its_block_holds() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": true});
    let marked = json!({"type": "text", "text": "a", "cache_control": 5});
    let kept = content(&[start(0, thinking.clone()), stop(0), start(1, marked.clone()), stop(1)]);
    assert_eq!(kept, json!([thinking, marked]));
    let (response, _) = read_stream(&[start(0, thinking), start(1, marked)]);
    assert!(matches!(&response.message.blocks()[0], Block::Reasoning(reasoning) if reasoning.text == "hm"));
    assert_eq!(response.message.text(), "a");
}

#[test]
fn half_a_character_does_not_spoil_the_stream() {
    let body = stream_of(&[start(0, empty_text()), text_delta(0, "FIRST"), text_delta(0, "SECOND")]);
    let body = body.replace("FIRST", r"a\ud83d").replace("SECOND", r"\ude00b");
    assert_eq!(streamed(&codec(), &body).expect("an answer").0.message.text(), "a\u{fffd}\u{fffd}b");
}

#[test]
fn another_message_within_a_stream_is_an_error_that_may_be_tried_again() {
    let begins = |id: &str| json!({"type": "message_start", "message": {"id": id, "role": "assistant", "content": []}});
    let cut = [begins("msg_1"), start(0, tool_use("toolu_1", "delete")), input_delta(0, "{\"path\":\"/tmp")];
    let anew = [begins("msg_2"), start(0, tool_use("toolu_2", "delete")), input_delta(0, "{}"), stop(0)];
    let body: String = cut.iter().chain(&anew).map(event).collect();
    let error = streamed(&codec(), &body).expect_err("two answers");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(matches!(error.retry(), agent_core::Retry::Temporary(_)), "{error}");
}

#[test]
fn a_hint_of_progress_is_no_part_of_thinking() {
    let hint = delta(0, json!({"type": "thinking_delta", "thinking": "", "estimated_tokens": 50}));
    let said =
        [start(0, empty_thinking()), hint.clone(), thinking_delta(0, "hm"), hint, signature_delta(0, "s"), stop(0)];
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    assert_eq!(content(&said)[0], thinking);
}
