//! Decoding of non-streamed answers.

use agent_core::{Block, ErrorKind, FinishReason, Retry, message::MediaSource};
use agent_llm::Codec;
use serde_json::{Value, json};

use super::{WIRE, body, call, codec, message, read, reasoning, words};

#[test]
fn every_item_has_its_block() {
    let other = |kind: &str| json!({"type": kind, "id": "x", "status": "completed"});
    let output = json!([
        reasoning("rs_1", &["One.", "Two."]),
        {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "Raw."}]},
        message("msg_1", "Here."),
        call("a", "look", "{}"),
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "sh", "input": "ls -l"},
        other("web_search_call"),
        other("file_search_call"),
        other("code_interpreter_call"),
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk=", "output_format": "webp"},
        other("image_generation_call"),
        other("computer_call"),
        other("mcp_call"),
        other("local_shell_call"),
        other("unheard_of"),
    ]);
    let response = read(&output);
    let expected = [
        "reasoning One.\n\nTwo.",
        "reasoning Raw.",
        "text Here.",
        "call call_a look {}",
        "call c2 sh ls -l",
        "server web_search",
        "server file_search",
        "server code_interpreter",
        "image",
        "other image_generation_call",
        "other computer_call",
        "other mcp_call",
        "other local_shell_call",
        "other unheard_of",
    ];
    assert_eq!(words(response.message.blocks()), expected);
    let raw = response.message.raw().expect("raw");
    assert_eq!((raw.origin().wire(), raw.to_value()), (WIRE, output));
    let Block::Reasoning(sealed) = &response.message.blocks()[0] else { panic!("reasoning") };
    assert_eq!(sealed.encrypted.as_deref(), Some("sealed"));
    let Block::Image(image) = &response.message.blocks()[8] else { panic!("an image") };
    assert_eq!((&image.source, image.mime.as_deref()), (&MediaSource::Base64("aGk=".into()), Some("image/webp")));
}

#[test]
fn a_text_has_its_citations_and_all_that_was_said_of_it() {
    let part = json!({
        "type": "output_text", "text": "Here.", "logprobs": [{"token": "Here", "logprob": -0.1}],
        "annotations": [
            {"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 0, "end_index": 4},
            {"type": "file_citation", "file_id": "file_1", "filename": "b.pdf", "index": 3},
            {"type": "file_path", "file_id": "file_2", "index": 4},
            {"type": "unheard_of"},
        ],
    });
    let mut said = message("msg_1", "");
    said["content"] = json!([part, {"type": "output_text", "text": "", "annotations": []}]);
    let response = read(&json!([said]));
    let [Block::Text(text)] = response.message.blocks() else { panic!("one text") };
    let citations: Vec<_> = text.citations.iter().map(|c| (c.url.as_deref(), c.title.as_deref())).collect();
    assert_eq!(citations, [(Some("https://a.test"), Some("A")), (None, Some("b.pdf")), (None, Some("file_2"))]);
    assert_eq!(text.raw.as_ref().expect("raw").to_value(), part);
}

fn answer(change: impl FnOnce(&mut Value)) -> agent_core::Result<agent_core::ModelResponse> {
    let mut whole: Value = serde_json::from_str(&body(&json!([message("msg_1", "Here.")]))).expect("JSON");
    change(&mut whole);
    codec().decode(whole.to_string().as_bytes())
}

#[test]
fn why_it_ended_is_told_apart() {
    let finish = |status: &str, reason: Value| {
        let said = answer(|whole| {
            whole["status"] = status.into();
            whole["incomplete_details"] = reason;
        });
        said.expect("an answer").finish
    };
    assert_eq!(finish("completed", Value::Null), FinishReason::Stop);
    assert_eq!(finish("incomplete", json!({"reason": "max_output_tokens"})), FinishReason::Length);
    assert_eq!(finish("incomplete", json!({"reason": "content_filter"})), FinishReason::ContentFilter);
    assert_eq!(finish("incomplete", json!({"reason": "tired"})), FinishReason::Other("tired".into()));
    assert_eq!(finish("cancelled", Value::Null), FinishReason::Other("cancelled".into()));
    assert_eq!(read(&json!([call("a", "look", "{}")])).finish, FinishReason::ToolCalls);
    let mut refusal = message("msg_1", "");
    refusal["content"] = json!([{"type": "refusal", "refusal": "I cannot."}]);
    assert_eq!(read(&json!([reasoning("rs_1", &[]), refusal])).finish, FinishReason::ContentFilter);
}

#[test]
fn tokens_are_counted_once_and_what_else_is_said_is_kept() {
    let response = answer(|whole| {
        whole["usage"] = json!({
            "input_tokens": 12, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 17,
        });
        whole["service_tier"] = "default".into();
        whole["moderation"] = json!({"input": []});
        whole["error"] = Value::Null;
        whole["instructions"] = "what was asked is not said again".into();
        whole["tools"] = json!([{"type": "web_search"}]);
    });
    let response = response.expect("an answer");
    let usage = response.usage;
    assert_eq!((usage.input, usage.cached, usage.output, usage.reasoning, usage.total()), (10, 2, 5, 3, 17));
    assert_eq!((response.id.as_deref(), response.model.as_deref()), (Some("r1"), Some("m-1")));
    assert_eq!(json!(response.details), json!({"service_tier": "default", "moderation": {"input": []}}));
    let priced = answer(|whole| whole["usage"] = json!({"input_tokens": 1, "output_tokens": 1, "cost": 0.5}));
    assert_eq!(priced.expect("an answer").details["usage"]["cost"], 0.5);
}

#[test]
fn a_response_that_failed_is_the_error_that_it_is() {
    for (error, kind, retry) in [
        (json!({"code": "server_error", "message": "Sorry."}), ErrorKind::Provider, Retry::Temporary(None)),
        (json!({"code": "rate_limit_exceeded", "message": "Slow."}), ErrorKind::RateLimited, Retry::Temporary(None)),
        (json!({"code": "context_length_exceeded", "message": "Long."}), ErrorKind::ContextOverflow, Retry::Permanent),
        (json!({"code": "invalid_prompt", "message": "No."}), ErrorKind::InvalidRequest, Retry::Permanent),
    ] {
        let failed = answer(|whole| {
            whole["status"] = "failed".into();
            whole["error"] = error.clone();
        });
        let failed = failed.expect_err("an error");
        assert_eq!(
            (failed.kind(), failed.retry(), failed.message()),
            (kind, retry, error["message"].as_str().expect("why"))
        );
    }
    let refused = codec().decode(br#"{"error": {"message": "No key.", "code": "invalid_api_key"}}"#);
    assert_eq!(refused.expect_err("an error").kind(), ErrorKind::Authentication);
    let silent = answer(|whole| whole["status"] = "failed".into()).expect_err("an error");
    assert_eq!(silent.message(), "the provider gave no reason");
}

#[test]
fn an_answer_that_is_still_to_come_is_told_from_what_is_none() {
    let queued = codec().decode(br#"{"id": "r1", "object": "response", "status": "queued", "output": []}"#);
    let queued = queued.expect_err("no answer yet");
    assert!(queued.kind() == ErrorKind::InvalidRequest && queued.message().contains("background"), "{queued}");
    for body in ["", "[]", "{}", "null", r#"{"choices": []}"#, r#"{"output": "text"}"#, "<html>"] {
        assert_eq!(codec().decode(body.as_bytes()).expect_err(body).kind(), ErrorKind::Protocol, "{body}");
    }
}
