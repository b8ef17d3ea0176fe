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

/// A codec of a server that leaves thinking in the text.
fn tagged() -> agent_llm::OpenAiChatCodec {
    let mut profile = agent_llm::Profile::compatible("acme", "http://acme.test/v1");
    profile.thinking_tags = true;
    agent_llm::OpenAiChatCodec::new("m", profile).expect("a codec")
}

fn contents(deltas: &[&str], reason: &str) -> String {
    let said = deltas.iter().map(|said| delta(&serde_json::json!({"content": said}).to_string()));
    said.chain([finish(reason), DONE.to_owned()]).collect()
}

#[test]
fn thinking_between_tags_is_reasoning_and_goes_back_as_it_came() {
    let both = [Block::reasoning("The user wants 4."), Block::text("Four.")];
    for deltas in
        [&["<thi", "nk>The user wants", " 4.</th", "ink>\n\nFour."][..], &["The user wants 4.", "</think>\n\nFour."]]
    {
        let (response, chunks) = streamed(&tagged(), &contents(deltas, "stop")).expect("an answer");
        assert_eq!(response.message.blocks(), both, "{deltas:?}");
        let mut heard = agent_core::model::MessageBuilder::default();
        chunks.iter().for_each(|chunk| heard.push(chunk));
        assert_eq!(heard.into_blocks(), both, "{deltas:?}");
        assert!(sent_back(&tagged(), &response.message).contains("</think>"), "{deltas:?}");
    }
    let (plain, _) = streamed(&codec(), &contents(&["<think>x</think>y"], "stop")).expect("an answer");
    assert_eq!(plain.message.text(), "<think>x</think>y", "of a server that tells thinking apart it is text");
}

#[test]
fn a_call_in_the_format_of_gpt_oss_is_a_call() {
    let said = "<|channel|>commentary to=functions.query <|constrain|>json<|message|>{\"q\":1}<|call|>";
    let (response, _) = streamed(&codec(), &contents(&[said], "stop")).expect("an answer");
    let calls: Vec<_> = response.message.calls().map(|call| (&*call.name, call.arguments.as_str())).collect();
    assert_eq!((calls, response.finish), (vec![("query", "{\"q\":1}")], agent_core::FinishReason::ToolCalls));
}

#[test]
fn an_answer_that_the_server_broke_off_is_an_error_that_may_be_tried_again() {
    let error = streamed(&codec(), &contents(&["The result is 4"], "insufficient_system_resource")).expect_err("cut");
    assert_eq!(error.kind(), agent_core::ErrorKind::Overloaded);
}

#[test]
fn a_call_in_the_older_form_is_a_call() {
    let message = r#"{"role":"assistant","content":null,"function_call":{"name":"look","arguments":"{\"a\":1}"}}"#;
    let response = codec().decode(completion(message, "function_call").as_bytes()).expect("an answer");
    let call = response.message.calls().next().expect("the call").clone();
    assert_eq!((&*call.name, call.arguments.as_str(), call.id.is_empty()), ("look", "{\"a\":1}", false));
    let (streamed, _) = streamed(
        &codec(),
        &[
            delta(r#"{"role":"assistant","content":null,"function_call":{"name":"look","arguments":"{\"a\":"}}"#),
            delta(r#"{"function_call":{"arguments":"1}"}}"#),
            finish("function_call"),
            DONE.to_owned(),
        ]
        .concat(),
    )
    .expect("an answer");
    assert_eq!(streamed.message.calls().next().expect("the call").arguments, "{\"a\":1}");
}

#[test]
fn usage_of_groq_is_found_where_nobody_asked_for_it() {
    let last = r#"data: {"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"q","usage":{"prompt_tokens":10,"completion_tokens":5}}}"#;
    let body = format!("{}{last}\n\n{DONE}", delta(r#"{"content":"hi"}"#));
    let (response, _) = streamed(&codec(), &body).expect("an answer");
    assert_eq!(response.usage.total(), 15, "{:?}", response.usage);
}

#[test]
fn thinking_that_comes_in_hundreds_of_pieces_goes_back_in_one() {
    let piece = |said: &str| {
        let part = json!({"type": "thinking", "thinking": [{"type": "text", "text": said}]});
        json!({"content": [part]}).to_string()
    };
    let deltas = [piece("Two "), piece("and "), piece("two."), json!({"content": "Four."}).to_string()];
    let (response, _) = read(&deltas.iter().map(String::as_str).collect::<Vec<_>>());
    let back: Value = serde_json::from_str(&sent_back(&codec(), &response.message)).expect("JSON");
    assert_eq!(back["content"][0]["thinking"], json!([{"type": "text", "text": "Two and two."}]));
}

#[test]
fn accounts_of_a_server_are_no_part_of_the_message() {
    let (response, _) = read(&[r#"{"role":"assistant","content":"Hi.","token_id":129}"#]);
    assert!(!sent_back(&codec(), &response.message).contains("token_id"));
}
