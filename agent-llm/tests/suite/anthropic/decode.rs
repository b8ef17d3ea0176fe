//! Decoding of non-streamed answers.

use agent_core::{Block, Error, ErrorKind, FinishReason, ModelResponse, Retry};
use agent_llm::Codec;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{answer, codec, raw};

fn read(content: &Value) -> ModelResponse {
    codec().decode(answer(content, "end_turn").as_bytes()).expect("an answer")
}

fn refused(body: &Value, status: u16) -> Error {
    let status = StatusCode::from_u16(status).expect("a status");
    codec().decode_error(status, &HeaderMap::new(), body.to_string().as_bytes())
}

#[test]
fn an_answer_is_read_with_all_that_is_said_about_it() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": "hello"}], "stop_reason": "stop_sequence", "stop_sequence": "END",
        "container": {"id": "container_1"}, "stop_details": null,
        "usage": {
            "input_tokens": 10, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3, "output_tokens": 5,
            "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
            "output_tokens_details": {"thinking_tokens": 4}, "service_tier": "standard",
        },
    });
    let response = codec().decode(body.to_string().as_bytes()).expect("an answer");
    assert_eq!(response.message.text(), "hello");
    assert_eq!((response.id.as_deref(), response.model.as_deref()), (Some("msg_1"), Some("claude-x")));
    let usage = response.usage;
    assert_eq!((usage.input, usage.cached, usage.cache_write, usage.output, usage.reasoning), (10, 2, 3, 5, 4));
    assert_eq!((usage.total(), &response.finish), (20, &FinishReason::Stop));
    let details = Value::Object(response.details);
    let wanted = json!({
        "stop_reason": "stop_sequence", "stop_sequence": "END", "container": {"id": "container_1"}, "usage": body["usage"],
    });
    assert_eq!(details, wanted, "and nothing that was null");
    let origin = response.message.raw().expect("raw").origin().clone();
    assert_eq!((origin.wire(), origin.provider(), origin.model()), ("anthropic-messages", "acme", "claude-opus-4-6"));
    assert_eq!(raw(&response.message), json!({"role": "assistant", "content": body["content"]}));
}

#[test]
fn every_kind_of_block_is_read_in_order() {
    let content = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "thinking", "thinking": "", "signature": "omitted"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}, "caller": {"type": "direct"}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "mcp_tool_use", "id": "m", "name": "ask", "server_name": "wiki", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": false, "content": []},
        {"type": "compaction", "content": "summary"},
        {"type": "text", "text": {"of": "tomorrow"}},
        "a text of tomorrow",
    ]);
    let response = read(&content);
    let [thought, omitted, redacted, text, call, others @ ..] = response.message.blocks() else { panic!("blocks") };
    let reasoning = |block: &Block| match block {
        Block::Reasoning(r) => (r.text.clone(), r.signature.clone(), r.encrypted.clone(), r.raw.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(reasoning(thought), ("hm".into(), Some("s".into()), None, false));
    assert_eq!(reasoning(omitted), (String::new(), Some("omitted".into()), None, false));
    assert_eq!(reasoning(redacted), (String::new(), None, Some("d".into()), false));
    assert_eq!(text, &Block::text("a"));
    let Block::ToolCall(call) = call else { panic!("the call") };
    assert_eq!((&*call.id, &*call.name, &*call.arguments), ("c", "f", r#"{"x":1}"#));
    assert_eq!(call.raw.as_ref().expect("it says more").to_value(), content[4]);
    let kept = others.iter().map(|block| match block {
        Block::Server(call) => call.raw.to_value(),
        Block::Other(raw) => raw.to_value(),
        other => panic!("{other:?}"),
    });
    assert_eq!(kept.collect::<Vec<_>>(), content.as_array().expect("a list")[5..]);
}

#[test]
fn the_reason_of_the_end_is_understood() {
    for (reason, wanted) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("tool_use", FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Paused),
    ] {
        let response = codec().decode(answer(&json!([]), reason).as_bytes()).expect("an answer");
        assert_eq!((&response.finish, &response.details["stop_reason"]), (&wanted, &reason.into()));
    }
    let call = json!([{"type": "tool_use", "id": "c", "name": "f", "input": {}}]);
    assert_eq!(read(&call).finish, FinishReason::ToolCalls, "although the server says end_turn");
}

#[test]
fn citations_of_every_kind_are_typed() {
    let cited = |citation: Value| {
        let response = read(&json!([{"type": "text", "text": "a", "citations": [citation]}]));
        let Block::Text(text) = &response.message.blocks()[0] else { panic!("a text") };
        let [citation] = text.citations.clone().try_into().expect("one");
        (citation.url, citation.title, citation.quote)
    };
    let some = |text: &str| Some(text.to_owned());
    let web = json!({"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "q", "encrypted_index": "e"});
    assert_eq!(cited(web), (some("u"), some("t"), some("q")));
    let document = json!({"type": "char_location", "document_title": "t", "cited_text": "q", "document_index": 0});
    assert_eq!(cited(document), (None, some("t"), some("q")));
    let search = json!({"type": "search_result_location", "source": "https://s", "title": null, "cited_text": "q"});
    assert_eq!(cited(search), (some("https://s"), None, some("q")));
}

#[test]
fn refusals_have_their_kinds() {
    let error = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"});
    for (kind, message, status, wanted) in [
        ("invalid_request_error", "no", 400, ErrorKind::InvalidRequest),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000", 400, ErrorKind::ContextOverflow),
        (
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            400,
            ErrorKind::ContextOverflow,
        ),
        ("authentication_error", "no", 401, ErrorKind::Authentication),
        ("billing_error", "no", 402, ErrorKind::Quota),
        ("permission_error", "no", 403, ErrorKind::Authentication),
        ("not_found_error", "no", 404, ErrorKind::InvalidRequest),
        ("request_too_large", "no", 413, ErrorKind::ContextOverflow),
        ("rate_limit_error", "no", 429, ErrorKind::RateLimited),
        ("api_error", "no", 500, ErrorKind::Provider),
        ("overloaded_error", "no", 529, ErrorKind::Overloaded),
    ] {
        let refused = refused(&error(kind, message), status);
        assert_eq!((refused.kind(), refused.message()), (wanted, message), "{kind}");
        assert_eq!((refused.context("provider"), refused.context("request_id")), (Some("acme"), Some("r")));
    }
    let whole = codec().decode(error("overloaded_error", "busy").to_string().as_bytes()).expect_err("an error");
    assert_eq!((whole.kind(), whole.retry()), (ErrorKind::Overloaded, Retry::Temporary(None)));
}

#[test]
fn what_is_no_answer_is_refused() {
    for body in ["", "{}", "[]", "{oops", r#"{"choices":[]}"#, r#"{"content":"text"}"#, "<html></html>"] {
        let error = codec().decode(body.as_bytes()).expect_err(body);
        assert_eq!(error.kind(), ErrorKind::Protocol, "{body}");
    }
    assert!(read(&json!([])).message.is_empty(), "an answer may say nothing");
}

#[test]
fn half_a_character_does_not_spoil_the_answer() {
    let body = answer(&json!([{"type": "text", "text": "HALF"}]), "end_turn").replace("HALF", r"a\ud83d");
    assert_eq!(codec().decode(body.as_bytes()).expect("an answer").message.text(), "a\u{fffd}");
}
