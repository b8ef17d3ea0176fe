//! Decoding of streamed answers.

use agent_core::{Block, Chunk, ErrorKind, FinishReason, ModelResponse, model::MessageBuilder};
use agent_llm::{Codec, Progress, conformance::event_stream};
use serde_json::{Value, json};

use super::{body, call, codec, common::streamed, message, read, reasoning, words};

fn added(at: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": at, "item": item})
}

fn done(at: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": at, "item": item})
}

fn text(at: u64, delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "msg", "output_index": at, "content_index": 0, "delta": delta})
}

fn summary(at: u64, nth: u64, delta: &str) -> Value {
    json!({"type": "response.reasoning_summary_text.delta", "output_index": at, "summary_index": nth, "delta": delta})
}

fn arguments(at: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": at, "delta": delta})
}

fn completed(output: &Value) -> Value {
    json!({"type": "response.completed", "response": serde_json::from_str::<Value>(&body(output)).expect("JSON")})
}

/// An item without content so far.
fn begun(item: &Value) -> Value {
    let mut item = item.clone();
    let empty =
        [("content", json!([])), ("summary", json!([])), ("arguments", json!("")), ("status", json!("in_progress"))];
    for (name, empty) in empty {
        if item.get(name).is_some() {
            item[name] = empty;
        }
    }
    item
}

fn hear(events: &[Value]) -> (ModelResponse, Vec<Chunk>) {
    let (response, chunks) = streamed(&codec(), &event_stream(events.iter().map(Value::to_string))).expect("an answer");
    let mut heard = MessageBuilder::default();
    chunks.iter().for_each(|chunk| heard.push(chunk));
    assert_eq!(heard.into_blocks(), response.message.blocks(), "{chunks:#?}");
    (response, chunks)
}

/// Returns the emitted chunks, one word each.
fn told(chunks: &[Chunk]) -> Vec<String> {
    let word = |chunk: &Chunk| match chunk {
        Chunk::Text { index, delta } => format!("{index} text {delta}"),
        Chunk::Reasoning { index, delta } => format!("{index} reasoning {delta}"),
        Chunk::ToolCall { index, id, name } => format!("{index} call {id} {name}"),
        Chunk::Arguments { index, delta } => format!("{index} arguments {delta}"),
        Chunk::Block { index, .. } => format!("{index} block"),
        Chunk::End { index } => format!("{index} end"),
        Chunk::Restart => "restart".into(),
        other => format!("{other:?}"),
    };
    chunks.iter().map(word).collect()
}

#[test]
fn reasoning_then_text_then_a_call() {
    let items = [reasoning("rs", &["One.", "Two."]), message("msg", "Hello"), call("a", "look", r#"{"n":1}"#)];
    let (response, chunks) = hear(&[
        added(0, &begun(&items[0])),
        summary(0, 0, "One."),
        summary(0, 1, "Tw"),
        summary(0, 1, "o."),
        done(0, &items[0]),
        added(1, &begun(&items[1])),
        text(1, "Hel"),
        text(1, "lo"),
        done(1, &items[1]),
        added(2, &begun(&items[2])),
        arguments(2, r#"{"n""#),
        arguments(2, ":1}"),
        done(2, &items[2]),
        completed(&json!(items)),
    ]);
    let expected = [
        "0 reasoning ",
        "0 reasoning One.",
        "0 reasoning \n\nTw",
        "0 reasoning o.",
        "0 block",
        "0 end",
        "1 text Hel",
        "1 text lo",
        "1 end",
        "2 call call_a look",
        r#"2 arguments {"n""#,
        "2 arguments :1}",
        "2 end",
    ];
    assert_eq!(told(&chunks), expected);
    assert_eq!(response, read(&json!(items)), "as if it had come whole");
}

#[test]
fn reasoning_that_nobody_can_read_begins_and_ends_all_the_same() {
    let items = [reasoning("rs", &[]), message("msg", "Hi")];
    let events = [added(0, &begun(&items[0])), done(0, &items[0]), text(1, "Hi"), done(1, &items[1])];
    let (_, chunks) = hear(&[&events[..], &[completed(&json!(items))]].concat());
    assert_eq!(told(&chunks), ["0 reasoning ", "0 block", "0 end", "1 text Hi", "1 end"]);
}

#[test]
fn calls_may_come_mixed_and_each_ends_once() {
    let items = [call("a", "look", r#"{"n":1}"#), call("b", "see", "{}")];
    let (response, chunks) = hear(&[
        added(0, &begun(&items[0])),
        added(1, &begun(&items[1])),
        arguments(1, "{"),
        arguments(0, r#"{"n":1}"#),
        done(0, &items[0]),
        arguments(1, "}"),
        done(1, &items[1]),
        completed(&json!(items)),
    ]);
    assert_eq!(words(response.message.blocks()), [r#"call call_a look {"n":1}"#, "call call_b see {}"]);
    assert_eq!(told(&chunks).iter().filter(|word| word.ends_with("end")).count(), 2);
}

#[test]
fn the_message_is_whole_whatever_a_server_leaves_out() {
    let items = [reasoning("rs", &["Hm."]), message("msg", "Hello"), call("a", "look", r#"{"n":1}"#)];
    let all = || {
        let begun = items.iter().zip(0..).map(|(item, at)| added(at, &begun(item)));
        let deltas = [summary(0, 0, "Hm."), text(1, "Hello"), arguments(2, r#"{"n":1}"#)];
        let ended = items.iter().zip(0..).map(|(item, at)| done(at, item));
        begun.zip(deltas).zip(ended).flat_map(|((begun, delta), ended)| [begun, delta, ended])
    };
    let leave = |kind: &'static str| all().filter(move |event| event["type"] != kind).collect::<Vec<_>>();
    let no_deltas = all().filter(|event| !event["type"].as_str().expect("a type").ends_with("delta")).collect();
    let ways: [(&str, Vec<Value>); 5] = [
        ("nothing", all().collect()),
        ("the beginnings", leave("response.output_item.added")),
        ("the ends", leave("response.output_item.done")),
        ("the deltas", no_deltas),
        ("all but the last event", Vec::new()),
    ];
    for (what, events) in ways {
        let whole = [&events[..], &[completed(&json!(items))]].concat();
        assert_eq!(hear(&whole).0, read(&json!(items)), "left out: {what}");
        if !events.is_empty() {
            let without_output = [&events[..], &[completed(&json!([]))]].concat();
            let response = hear(&without_output).0;
            assert_eq!(
                words(response.message.blocks()),
                words(read(&json!(items)).message.blocks()),
                "and output: {what}"
            );
            let raw = response.message.raw().expect("raw").to_value();
            assert_eq!(raw, json!(items), "left out: output and {what}");
        }
    }
}

#[test]
fn ids_may_change_from_event_to_event() {
    let items = [reasoning("rs_end", &["Hm."]), message("msg_end", "Hello")];
    let with_id = |mut event: Value, id: &str| {
        match event.get("item").is_some() {
            true => event["item"]["id"] = id.into(),
            false => event["item_id"] = id.into(),
        }
        event
    };
    let (response, _) = hear(&[
        with_id(added(0, &begun(&items[0])), "x1"),
        with_id(summary(0, 0, "Hm."), "x2"),
        with_id(done(0, &items[0]), "x3"),
        with_id(added(1, &begun(&items[1])), "x4"),
        with_id(text(1, "Hel"), "x5"),
        with_id(text(1, "lo"), "x6"),
        with_id(done(1, &items[1]), "x7"),
        completed(&json!(items)),
    ]);
    assert_eq!(response, read(&json!(items)), "the last event holds");
}

#[test]
fn a_server_may_number_all_items_alike_or_not_at_all() {
    let items = [reasoning("rs", &["Hm."]), message("msg", "Hello"), call("a", "look", "{}")];
    for index in [json!(0), Value::Null] {
        let events = [
            added(0, &begun(&items[0])),
            summary(0, 0, "Hm."),
            done(0, &items[0]),
            added(0, &begun(&items[1])),
            text(0, "Hello"),
            done(0, &items[1]),
            added(0, &begun(&items[2])),
            arguments(0, "{}"),
            done(0, &items[2]),
            completed(&json!([])),
        ];
        let events = events.map(|mut event| {
            event["output_index"] = index.clone();
            event
        });
        assert_eq!(hear(&events).0.message.raw().expect("raw").to_value(), json!(items), "{index}");
    }
}

#[test]
fn whole_texts_stand_in_for_deltas_that_did_not_come() {
    let items = [message("msg", "Hello"), call("a", "look", "{}")];
    let (response, chunks) = hear(&[
        added(0, &begun(&items[0])),
        text(0, "Hel"),
        json!({"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello"}),
        added(1, &begun(&items[1])),
        json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{}"}),
        completed(&json!([])),
    ]);
    assert_eq!(words(response.message.blocks()), ["text Hello", "call call_a look {}"]);
    let expected = ["0 text Hel", "0 text lo", "0 end", "1 call call_a look", "1 arguments {}"];
    assert_eq!(told(&chunks)[..5], expected);
}

#[test]
fn a_call_is_told_of_when_it_is_known_which() {
    let item = call("a", "look", "{}");
    let mut nameless = begun(&item);
    nameless["name"] = "".into();
    let (_, chunks) = hear(&[added(0, &nameless), arguments(0, "{}"), done(0, &item), completed(&json!([item]))]);
    assert_eq!(told(&chunks), ["0 call call_a look", "0 arguments {}", "0 end"]);
    let (_, chunks) = hear(&[arguments(0, "{"), added(0, &begun(&item)), arguments(0, "}"), completed(&json!([item]))]);
    assert_eq!(told(&chunks)[..3], ["0 call call_a look", "0 arguments {", "0 arguments }"]);
}

#[test]
fn an_item_that_never_ended_keeps_its_place() {
    let list = |id: &str| json!({"type": "mcp_list_tools", "id": id, "server_label": id, "tools": []});
    let items = [list("a"), list("b"), message("msg", "Hi")];
    let (_, chunks) = hear(&[
        added(0, &list("a")),
        added(1, &list("b")),
        done(1, &list("b")),
        text(2, "Hi"),
        completed(&json!(items)),
    ]);
    assert_eq!(told(&chunks), ["0 block", "0 end", "1 block", "1 end", "2 text Hi", "2 end"]);
}

#[test]
fn reasoning_in_an_item_of_another_kind_is_told_with_the_item() {
    let search = json!({"type": "web_search_call", "id": "ws", "status": "in_progress"});
    let whole = completed(&json!([search, message("msg", "Hi!")]));
    let (response, chunks) = hear(&[added(0, &search), text(1, "Hi"), summary(0, 0, "see."), text(1, "!"), whole]);
    assert_eq!(response.message.text(), "Hi!");
    assert!(!told(&chunks).iter().any(|told| told.contains("reasoning")), "{chunks:?}");
}

#[test]
fn what_a_server_takes_back_is_told_again_from_the_start() {
    let (response, chunks) = hear(&[text(0, "no"), completed(&json!([call("a", "look", "{}")]))]);
    assert_eq!(told(&chunks), ["0 text no", "restart", "0 call call_a look", "0 arguments {}", "0 end"]);
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn sources_are_part_of_the_text_that_listeners_get() {
    let mut said = message("msg", "Here.");
    said["content"][0]["annotations"] = json!([{"type": "url_citation", "url": "https://a.test"}]);
    let (response, chunks) = hear(&[text(0, "Here."), done(0, &said), completed(&json!([said]))]);
    assert_eq!(told(&chunks), ["0 text Here.", "0 block", "0 end"]);
    let [Block::Text(text)] = response.message.blocks() else { panic!("one text") };
    assert_eq!(text.citations[0].url.as_deref(), Some("https://a.test"));
}

#[test]
fn an_incomplete_answer_is_an_answer() {
    let mut cut = completed(&json!([message("msg", "Hel")]));
    cut["type"] = "response.incomplete".into();
    cut["response"]["status"] = "incomplete".into();
    cut["response"]["incomplete_details"] = json!({"reason": "max_output_tokens"});
    let (response, _) = hear(&[text(0, "Hel"), cut]);
    assert_eq!((response.message.text().as_str(), response.finish), ("Hel", FinishReason::Length));
}

#[test]
fn errors_end_a_stream_as_what_they_are() {
    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slow.", "param": null});
    let nested =
        json!({"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "Sorry."}});
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error_type": "overloaded_error",
        "error": {"code": "server_error", "message": "Sorry."}}});
    let bare = json!({"error": {"code": 429, "message": "Slow."}});
    for (event, kind) in [
        (flat, ErrorKind::RateLimited),
        (nested, ErrorKind::Provider),
        (failed, ErrorKind::Provider),
        (bare, ErrorKind::RateLimited),
    ] {
        let body = event_stream([text(0, "Hel").to_string(), event.to_string()]);
        assert_eq!(streamed(&codec(), &body).expect_err("an error").kind(), kind, "{event}");
    }
}

#[test]
fn a_stream_is_complete_with_its_last_event_alone() {
    let mut decoder = codec().decoder(false);
    let mut chunks = Vec::new();
    decoder.frame(&text(0, "Hi").to_string(), &mut chunks).expect("a frame");
    decoder.frame("[DONE]", &mut chunks).expect("a frame");
    assert_eq!(decoder.progress(), Progress::Open);
    assert_eq!(decoder.finish(&mut chunks).expect_err("cut").kind(), ErrorKind::Truncated);
    let mut decoder = codec().decoder(false);
    decoder.frame(&completed(&json!([message("msg", "Hi")])).to_string(), &mut chunks).expect("a frame");
    assert_eq!(decoder.progress(), Progress::Ended);
    decoder.frame("no JSON, and nobody's business", &mut chunks).expect("nothing follows");
    assert_eq!(decoder.finish(&mut chunks).expect("an answer").message.text(), "Hi");
    assert!(chunks.is_empty(), "nobody listens");
    let mut decoder = codec().decoder(false);
    assert_eq!(decoder.frame("{", &mut chunks).expect_err("no JSON").kind(), ErrorKind::Protocol);
}

#[test]
fn what_stands_beside_the_response_is_a_detail() {
    let mut end = completed(&json!([message("msg", "Hi")]));
    end["copilot_usage"] = json!({"total": 3});
    end["response"]["service_tier"] = "flex".into();
    let details = hear(&[end]).0.details;
    assert_eq!(json!(details), json!({"copilot_usage": {"total": 3}, "service_tier": "flex"}));
}
