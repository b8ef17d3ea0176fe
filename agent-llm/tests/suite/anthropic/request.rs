//! Round trip of requests: decoding and encoding.

use agent_core::{
    Block, ErrorKind, History, Message, Part, ToolChoice, message::Cache, model::Effort, testing::detached_run,
};
use agent_llm::{ParsedRequest, RequestReader};
use serde_json::{Value, json};

use super::{codec, common::encoded};

fn read(body: &Value) -> ParsedRequest {
    codec().decode_request(body.to_string().as_bytes()).expect("a request")
}

fn written(parsed: ParsedRequest) -> Value {
    encoded(&codec(), &parsed.into_request(detached_run(History::default()).cx().clone()))
}

/// A request with all features, as clients write it.
fn everything() -> Value {
    json!({
        "model": "claude-opus-4-6", "max_tokens": 99, "temperature": 0, "top_p": 0.5, "top_k": 5, "stream": true,
        "stop_sequences": ["x"], "metadata": {"user_id": "7"}, "service_tier": "auto", "container": "c",
        "cache_control": {"type": "ephemeral", "ttl": "5m"}, "mcp_servers": [{"type": "url", "url": "u", "name": "n"}],
        "thinking": {"type": "enabled", "budget_tokens": 1024}, "context_management": {"edits": []},
        "output_config": {"effort": "xhigh", "format": {"type": "json_schema", "schema": {"type": "string"}}},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": false},
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "5m"}}, {"type": "text", "text": ""}],
        "tools": [
            {"name": "f", "description": "does", "input_schema": {"type": "object"}},
            {"name": "g", "description": "does", "input_schema": {"type": "object"}, "strict": true, "cache_control": {"type": "ephemeral"}},
            {"type": "custom", "name": "h", "input_schema": {"properties": {}}},
            {"type": "web_search_1", "name": "web_search", "max_uses": 1},
            {"type": "mcp_toolset", "mcp_server_name": "n"},
        ],
        "messages": [
            {"role": "user", "content": "text"},
            {"role": "user", "content": [{"type": "text", "text": "parts", "cache_control": null}]},
            {"role": "assistant", "content": "text"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c2", "name": "g", "input": {"x": 1.0}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one", "is_error": false},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "two"}], "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "and?"},
                {"type": "text", "text": "marked", "cache_control": null},
                {"type": "image", "source": {"type": "url", "url": "u"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"},
                {"type": "search_result", "source": "s", "title": "t", "content": []},
            ]},
            {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "done ", "citations": null}]},
        ],
    })
}

#[test]
fn a_request_that_is_read_and_written_again_keeps_every_field() {
    let mut wanted = everything();
    wanted["temperature"] = json!(0.0);
    assert_eq!(written(read(&everything())), wanted);
}

#[test]
fn what_can_be_understood_is_understood() {
    let parsed = read(&everything());
    assert_eq!((parsed.model.as_str(), parsed.stream), ("claude-opus-4-6", true));
    let params = &parsed.params;
    assert_eq!((params.max_tokens, params.temperature, params.top_p), (Some(99), Some(0.0), Some(0.5)));
    assert_eq!(params.stop, ["x"]);
    let Part::Text(system) = &parsed.system.as_ref().expect("a system prompt").parts()[0] else { panic!("a text") };
    assert_eq!((system.text.as_str(), system.cache), ("s", Some(Cache::Short)));
    let tools: Vec<_> = parsed
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.is_server_side(), tool.raw.is_some(), tool.cache))
        .collect();
    let wanted = [
        ("f", false, false, None),
        ("g", false, true, Some(Cache::Short)),
        ("h", false, true, None),
        ("web_search", true, true, None),
        ("n", true, true, None),
    ];
    assert_eq!(tools, wanted);
    let roles: Vec<_> = parsed.messages.iter().map(Message::role).collect();
    assert_eq!(roles, ["user", "user", "assistant", "assistant", "tool", "tool", "user", "system", "assistant"]);
    let turn = parsed.messages.get(3).and_then(Message::as_assistant).expect("the turn");
    assert!(matches!(&turn.blocks()[0], Block::Reasoning(r) if r.signature.as_deref() == Some("s")));
    let result = parsed.messages.get(5).and_then(Message::as_tool).expect("a result");
    assert_eq!((result.call_id(), result.name(), result.is_error()), ("c2", "g", false));
}

#[test]
fn settings_are_typed_where_writing_them_says_the_same() {
    let settings = |body: Value| {
        let parsed = read(&body);
        assert_eq!(written(parsed.clone()), body);
        parsed.params
    };
    let schema = json!({"type": "object", "additionalProperties": false});
    let params = settings(json!({
        "model": "claude-opus-4-6", "max_tokens": 9, "messages": [], "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": schema}},
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
    }));
    assert_eq!((params.effort, params.parallel_tool_calls), (Some(Effort::High), Some(false)));
    assert_eq!(params.tool_choice, Some(ToolChoice::Auto));
    assert_eq!(params.output.expect("a form").schema, schema);
    assert!(params.extra.is_empty(), "{:?}", params.extra);

    for refused in [json!({"temperature": 0.5}), json!({"tool_choice": {"type": "tool", "name": "f"}})] {
        let mut body = json!({
            "model": "claude-opus-4-6", "max_tokens": 9, "messages": [], "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"}, "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        });
        let fields = body.as_object_mut().expect("an object");
        fields.extend(refused.as_object().expect("an object").clone());
        assert!(settings(body).extra.contains_key("thinking"), "what the API refuses together is written as it came");
    }

    let params = settings(json!({
        "model": "claude-opus-4-6", "max_tokens": 9, "messages": [], "tool_choice": {"type": "any"},
        "output_config": {"effort": "high"},
    }));
    assert_eq!((params.effort, params.tool_choice), (None, None), "there are no tools, and thinking was not asked for");
    assert_eq!(params.extra.len(), 2);
}

#[test]
fn a_read_conversation_can_be_gone_on_with() {
    let mut parsed = read(&everything());
    parsed.messages.push(Message::user("more")).expect("pushes");
    let sent = written(parsed);
    let last = sent["messages"].as_array().expect("messages").last().expect("one");
    assert_eq!(last, &json!({"role": "user", "content": [{"type": "text", "text": "more"}]}));
}

#[test]
fn a_conversation_that_no_provider_would_take_is_repaired() {
    let call = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let orphan = json!({"type": "tool_result", "tool_use_id": "x", "content": "v"});
    let parsed = read(&json!({"model": "m", "max_tokens": 1, "messages": [
        {"role": "user", "content": [orphan, {"type": "text", "text": "u"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": "never mind"},
    ]}));
    let roles: Vec<_> = parsed.messages.iter().map(Message::role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert!(parsed.messages.get(2).and_then(Message::as_tool).expect("a result").is_error());
}

#[test]
fn what_is_no_request_is_refused() {
    let codec = codec();
    for body in [
        "",
        "[]",
        "{}",
        r#"{"messages":"hi"}"#,
        r#"{"messages":[{"content":"no role"}]}"#,
        r#"{"messages":[{"role":"alien","content":"x"}]}"#,
        r#"{"messages":[{"role":"user","content":7}]}"#,
        r#"{"messages":[],"tools":{}}"#,
    ] {
        let error = codec.decode_request(body.as_bytes()).expect_err(body);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false), "{body}");
    }
}
