//! Decoding of non-streamed answers.

use agent_core::{Block, ErrorKind, FinishReason, ModelResponse, Result, Retry, message::MediaSource};
use agent_llm::Codec;

use super::common::{codec, completion, sent_back};

fn read(message: &str, finish: &str) -> ModelResponse {
    codec().decode(completion(message, finish).as_bytes()).expect("an answer")
}

fn decode(body: &str) -> Result<ModelResponse> {
    codec().decode(body.as_bytes())
}

fn reasoning(response: &ModelResponse) -> Vec<&str> {
    let blocks = response.message.blocks().iter();
    blocks.filter_map(|b| if let Block::Reasoning(r) = b { Some(r.text.as_str()) } else { None }).collect()
}

#[test]
fn an_answer_is_read_with_all_that_is_said_about_it() {
    let response = read(r#"{"role":"assistant","content":"hello"}"#, "stop");
    assert_eq!(response.message.text(), "hello");
    assert_eq!((response.id.as_deref(), response.model.as_deref()), (Some("r1"), Some("m-1")));
    assert_eq!((response.usage.input, response.usage.output), (10, 5));
    let raw = response.message.raw().expect("raw");
    assert_eq!(raw.json(), r#"{"role":"assistant","content":"hello"}"#);
    assert_eq!((raw.origin().wire(), raw.origin().provider(), raw.origin().model()), ("openai-chat", "acme", "m"));
}

#[test]
fn reasoning_is_read_in_every_spelling_and_once() {
    for message in [
        r#"{"content":"a","reasoning_content":"hm"}"#,
        r#"{"content":"a","reasoning":"hm"}"#,
        r#"{"content":"a","reasoning":"hm","reasoning_content":"hm"}"#,
        r#"{"content":"a","reasoning_content":[{"type":"text","text":"h"},{"type":"text","text":"m"}]}"#,
        r#"{"content":"a","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}"#,
        r#"{"content":"a","reasoning":"hm","reasoning_details":[{"type":"reasoning.summary","summary":"hm"}]}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}"#,
    ] {
        let response = read(message, "stop");
        assert_eq!((reasoning(&response), response.message.text().as_str()), (vec!["hm"], "a"), "{message}");
        assert_eq!(sent_back(&codec(), &response.message), message, "verbatim");
    }
}

#[test]
fn what_proves_the_reasoning_is_kept_beside_it() {
    let details =
        r#"[{"type":"reasoning.text","text":"hm","signature":"s"},{"type":"reasoning.encrypted","data":"d"}]"#;
    let response = read(&format!(r#"{{"content":"a","reasoning":"hm","reasoning_details":{details}}}"#), "stop");
    let Block::Reasoning(reasoning) = &response.message.blocks()[0] else { panic!("reasoning first") };
    assert_eq!((reasoning.signature.as_deref(), reasoning.encrypted.as_deref()), (Some("s"), Some("d")));
    assert_eq!(reasoning.raw.as_ref().expect("raw").json(), details);
}

#[test]
fn calls_are_read_as_all_servers_send_them() {
    let message = r#"{"content":null,"tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
        {"id":"b","index":1,"function":{"name":"g","arguments":{"y":2}}},
        {"id":"c","type":"custom","custom":{"name":"h","input":"words"}},
        {"id":"d","type":"function","function":{"name":"i","arguments":null}}]}"#;
    let response = read(message, "stop");
    let calls: Vec<_> = response.message.calls().map(|c| (&*c.id, &*c.name, &*c.arguments)).collect();
    assert_eq!(calls, [("a", "f", r#"{"x":1}"#), ("b", "g", r#"{"y":2}"#), ("c", "h", "words"), ("d", "i", "")]);
    assert_eq!(response.finish, FinishReason::ToolCalls, "whatever the server says");
}

#[test]
fn calls_without_ids_are_named_alike_each_time() {
    let message =
        r#"{"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"g"}}],"v":1}"#;
    let response = read(message, "tool_calls");
    let ids: Vec<_> = response.message.calls().map(|c| &*c.id).collect();
    assert_eq!(ids, ["call_r1_0", "call_r1_1"]);
    let back: serde_json::Value = serde_json::from_str(&sent_back(&codec(), &response.message)).expect("valid");
    assert_eq!(back["tool_calls"][1]["id"], "call_r1_1", "the results name it");
    assert_eq!(back["v"], 1, "and the rest is kept");
    assert!(back.get("content").is_none(), "what was not there is not added");
}

#[test]
fn every_end_has_its_reason() {
    let end = |message: &str, finish: &str| read(message, finish).finish;
    let text = r#"{"content":"a"}"#;
    assert_eq!(end(text, "stop"), FinishReason::Stop);
    assert_eq!(end(text, ""), FinishReason::Stop);
    assert_eq!(end(text, "length"), FinishReason::Length);
    assert_eq!(end(text, "content_filter"), FinishReason::ContentFilter);
    assert_eq!(end(text, "tired"), FinishReason::Other("tired".into()));
    assert_eq!(end(r#"{"content":null,"refusal":"no"}"#, "stop"), FinishReason::ContentFilter);
    let call = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}"#;
    assert_eq!(end(call, "length"), FinishReason::Length, "its arguments may be cut");
}

#[test]
fn what_is_not_understood_is_kept() {
    let refusal = read(r#"{"content":null,"refusal":"no"}"#, "stop");
    let [Block::Other(raw)] = refusal.message.blocks() else { panic!("one block") };
    assert_eq!(raw.json(), r#"{"refusal":"no","type":"refusal"}"#);
    let reference = read(r#"{"content":[{"type":"reference","ids":[1]},{"type":"text","text":"a","cite":2}]}"#, "stop");
    let [Block::Other(part), Block::Text(text)] = reference.message.blocks() else { panic!("two blocks") };
    assert_eq!(part.json(), r#"{"type":"reference","ids":[1]}"#);
    assert_eq!((text.text.as_str(), text.raw.is_some()), ("a", true));
    let legacy = read(r#"{"content":null,"function_call":{"name":"f","arguments":"{}"}}"#, "function_call");
    assert!(matches!(legacy.message.blocks(), [Block::ToolCall(_)]), "the older form of a call");
    let unknown = read(r#"{"content":null,"sketch":{"strokes":[1]}}"#, "stop");
    assert!(matches!(unknown.message.blocks(), [Block::Other(_)]), "something was said");
}

#[test]
fn spoken_and_painted_answers_are_read() {
    let audio = read(r#"{"content":null,"audio":{"id":"a","data":"","transcript":"hello"}}"#, "stop");
    assert_eq!(audio.message.text(), "hello");
    let url = "data:image/png;base64,QUJD";
    let image = format!(r#"{{"content":"here","images":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}"#);
    let image = read(&image, "stop");
    let [Block::Text(_), Block::Image(media)] = image.message.blocks() else { panic!("two blocks") };
    assert_eq!(media.source, MediaSource::Base64("QUJD".into()));
}

#[test]
fn only_the_first_choice_counts() {
    let body = r#"{"choices":[{"index":1,"message":{"content":"b"}},{"index":0,"message":{"content":"a"}}]}"#;
    assert_eq!(decode(body).expect("an answer").message.text(), "a");
}

#[test]
fn an_error_in_place_of_an_answer_is_the_providers() {
    let filtered = decode(r#"{"error":{"message":"no","code":"content_filter","status":400}}"#).expect_err("filtered");
    assert_eq!((filtered.kind(), filtered.retry()), (ErrorKind::ContentFiltered, Retry::Permanent));
    let behind = r#"{"choices":[{"message":{"content":""},"error":{"code":502,"message":"upstream"}}]}"#;
    let behind = decode(behind).expect_err("an error");
    assert_eq!((behind.kind(), behind.is_retryable()), (ErrorKind::Provider, true));
    assert_eq!(behind.context("status"), Some("502"));
}

#[test]
fn garbage_is_not_an_answer() {
    for body in ["", "{", "null", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":[{}]}"#, "\u{0}\u{1}"] {
        let error = decode(body).expect_err(body);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Protocol, true), "{body}");
    }
    let page = decode("\u{feff} <!DOCTYPE html><html>").expect_err("a page");
    assert_eq!((page.kind(), page.is_retryable()), (ErrorKind::Protocol, false));
    assert!(page.message().contains("base URL"), "{page}");
}

#[test]
fn bytes_that_are_no_text_do_not_spoil_the_answer() {
    let mut body = completion(r#"{"content":"a#b"}"#, "stop").into_bytes();
    body.iter_mut().filter(|b| **b == b'#').for_each(|b| *b = 0xFF);
    assert_eq!(codec().decode(&body).expect("an answer").message.text(), "a\u{fffd}b");
}
