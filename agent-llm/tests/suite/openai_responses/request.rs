//! Decoding of requests.

use agent_core::{Block, ErrorKind, History, Message, Part, ToolChoice, model::Effort, testing::detached_run};
use agent_llm::{ParsedRequest, RequestReader, conformance::json::not_kept};
use serde_json::{Value, json};

use super::{call, codec, codec_of, common::encoded, message, reasoning, words};

fn parse(request: &Value) -> ParsedRequest {
    codec().decode_request(request.to_string().as_bytes()).expect("a request")
}

fn written(parsed: ParsedRequest) -> Value {
    encoded(&codec(), &parsed.into_request(detached_run(History::default()).cx().clone()))
}

fn survives(request: &Value) -> ParsedRequest {
    let parsed = parse(request);
    assert_eq!(not_kept(request, &written(parsed.clone())), [""; 0]);
    parsed
}

fn roles(parsed: &ParsedRequest) -> Vec<&'static str> {
    parsed.messages.iter().map(Message::role).collect()
}

#[test]
fn what_is_understood_has_its_place_and_the_rest_is_kept() {
    let parsed = survives(&json!({
        "model": "m", "input": [{"role": "user", "content": "hi"}], "instructions": "Be brief.", "temperature": 0,
        "top_p": 0.5, "max_output_tokens": 9, "parallel_tool_calls": true, "tool_choice": {"type": "function", "name": "f"},
        "reasoning": {"effort": "high", "summary": "auto"}, "stream": true, "store": true, "seed": 7, "stop": "END",
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": false}, "verbosity": "low"},
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": false}],
        "include": ["message.output_text.logprobs"], "metadata": {"a": "b"}, "previous_response_id": "r0", "user": "ann",
    }));
    assert_eq!((parsed.model.as_str(), parsed.stream), ("m", true));
    assert_eq!(parsed.system.as_ref().expect("instructions").text(), "Be brief.");
    let params = &parsed.params;
    assert_eq!((params.temperature, params.top_p, params.max_tokens), (Some(0.0), Some(0.5), Some(9)));
    assert_eq!((params.effort, params.parallel_tool_calls), (Some(Effort::High), Some(true)));
    assert_eq!(params.tool_choice, Some(ToolChoice::Tool("f".into())));
    assert_eq!(params.output.as_ref().expect("a format").name, "a");
    assert_eq!((params.seed, params.stop.len()), (Some(7), 0), "the API knows no stop sequences: this server does");
    assert!(parsed.tools[0].raw.is_none(), "it says no more than the tool");
    let left: Vec<_> = params.extra.keys().map(String::as_str).collect();
    assert_eq!(left, ["include", "metadata", "previous_response_id", "reasoning", "stop", "store", "text", "user"]);
    assert_eq!(params.extra["reasoning"], json!({"summary": "auto"}), "the effort can still be changed");
}

#[test]
fn an_input_that_is_a_text_stays_one_until_more_follows() {
    let request = json!({"model": "m", "input": "Hello \"you\""});
    let mut parsed = survives(&request);
    assert_eq!(parsed.messages.get(0).expect("a message").text(), "Hello \"you\"");
    parsed.messages.push(Message::assistant("Hello.")).expect("pushed");
    let expected = json!([{"role": "user", "content": "Hello \"you\""}, {"role": "assistant", "content": "Hello."}]);
    assert_eq!(written(parsed)["input"], expected);
}

#[test]
fn items_become_turns_and_go_back_as_they_came() {
    let output = |id: &str| json!({"type": "function_call_output", "call_id": format!("call_{id}"), "output": id});
    let parsed = survives(&json!({"model": "m", "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        {"role": "user", "content": [
            {"type": "input_text", "text": "Look.", "prompt_cache_breakpoint": true},
            {"type": "input_image", "image_url": "https://a.test/i.png", "detail": "high"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"},
        ]},
        reasoning("rs_1", &["Hm."]), message("msg_1", "I look."), call("a", "look", "{}"), call("b", "look", "{}"),
        output("a"), output("b"),
        {"type": "custom_tool_call", "id": "ctc", "call_id": "c3", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}},
        {"role": "assistant", "content": "Found."},
        {"type": "item_reference", "id": "msg_0"},
        {"type": "compaction", "id": "cmp", "encrypted_content": "sealed"},
        {"role": "user", "content": "Thanks."},
    ]}));
    let roles = roles(&parsed);
    let turns =
        ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user", "assistant", "user"];
    assert_eq!(roles, turns);
    let said = parsed.messages.get(2).and_then(Message::as_assistant).expect("a turn");
    assert_eq!(words(said.blocks()), ["reasoning Hm.", "text I look.", "call call_a look {}", "call call_b look {}"]);
    let Some(Message::User(user)) = parsed.messages.get(1) else { panic!("a user") };
    assert!(matches!(user.parts(), [Part::Text(_), Part::Image(_), Part::Document(_)]));
    assert_eq!(parsed.messages.get(6).and_then(Message::as_tool).expect("a result").name(), "sh");
}

#[test]
fn what_is_unpaired_is_kept_as_what_is_not_understood() {
    let output = |id: &str| json!({"type": "function_call_output", "call_id": format!("call_{id}"), "output": id});
    let parsed = survives(&json!({"model": "m", "previous_response_id": "r0", "input": [
        output("before"), call("a", "look", "{}"), {"role": "user", "content": "Wait."}, output("a"),
        call("b", "look", "{}"), call("b", "look", "{}"), output("b"), output("b"), {"role": "assistant", "content": ""},
    ]}));
    assert_eq!(roles(&parsed), ["user", "assistant", "user", "user", "assistant", "tool", "user", "assistant"]);
    let turn = |at| parsed.messages.get(at).and_then(Message::as_assistant).expect("a turn");
    assert_eq!(words(turn(1).blocks()), ["other function_call"]);
    assert_eq!(words(turn(4).blocks()), ["call call_b look {}", "other function_call"]);
    assert!(matches!(turn(7).blocks(), [Block::Other(_)]));
}

#[test]
fn results_are_put_in_the_order_of_their_calls() {
    let output = |id: &str| json!({"type": "function_call_output", "call_id": format!("call_{id}"), "output": id});
    let items = [call("a", "look", "{}"), call("b", "look", "{}"), output("b"), output("a")];
    let parsed = parse(&json!({"model": "m", "input": items}));
    let [a, b, of_b, of_a] = items;
    assert_eq!(written(parsed)["input"], json!([a, b, of_a, of_b]));
}

#[test]
fn tools_of_all_kinds_are_kept() {
    let parsed = survives(
        &json!({"model": "m", "input": "hi", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}, "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true},
            {"type": "function", "name": "g", "parameters": null},
            {"type": "custom", "name": "sh", "description": "Runs.", "format": {"type": "text"}},
            {"type": "web_search", "search_context_size": "low"},
            {"type": "mcp", "server_label": "s", "server_url": "https://s.test"},
        ]}),
    );
    let names: Vec<_> = parsed.tools.iter().map(|tool| (tool.name.as_str(), tool.is_server_side())).collect();
    assert_eq!(names, [("f", false), ("g", false), ("sh", false), ("web_search", true), ("mcp", true)]);
    assert!(parsed.params.tool_choice.is_none());
}

#[test]
fn a_codec_that_keeps_nothing_says_so_of_what_it_read() {
    let codec = codec_of("gpt-5", |_| {});
    let parsed = codec.decode_request(br#"{"model": "gpt-5", "input": "hi"}"#).expect("a request");
    let body = encoded(&codec, &parsed.into_request(detached_run(History::default()).cx().clone()));
    assert_eq!(body["store"], false);
    let parsed = codec.decode_request(br#"{"model": "gpt-5", "input": "hi", "store": true}"#).expect("a request");
    let body = encoded(&codec, &parsed.into_request(detached_run(History::default()).cx().clone()));
    assert_eq!(body["store"], true, "who asks for it gets it");
}

#[test]
fn what_is_no_request_is_refused() {
    for body in ["", "[]", "null", "7", "{\"model\": \"m\""] {
        let error = codec().decode_request(body.as_bytes()).expect_err(body);
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{body}");
    }
    survives(&json!({"model": "m", "input": {"odd": 1}, "tools": "none", "stream": "yes", "instructions": 7}));
    survives(&json!({"model": "m", "input": [], "tools": []}));
}
