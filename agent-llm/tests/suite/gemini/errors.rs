//! Errors.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Retry};
use agent_llm::{Codec, Progress};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::support::{codec, response, text, try_stream};

fn refused(status: u16, error: Value) -> Error {
    let status = StatusCode::from_u16(status).expect("a status");
    codec().decode_error(status, &HeaderMap::new(), json!({"error": error}).to_string().as_bytes())
}

#[test]
fn errors_have_their_classes_and_the_providers_delay() {
    let delay = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]);
    let limited = json!({"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": delay});
    let seven = Retry::Temporary(Some(Duration::from_secs(7)));
    let error = refused(429, limited.clone());
    assert_eq!((error.kind(), error.retry()), (ErrorKind::RateLimited, seven));
    let error = try_stream(&[json!({"error": limited})]).expect_err("an error");
    assert_eq!((error.kind(), error.retry()), (ErrorKind::RateLimited, seven));
    for (status, name, kind) in [
        (400, "INVALID_ARGUMENT", ErrorKind::InvalidRequest),
        (403, "PERMISSION_DENIED", ErrorKind::Authentication),
        (404, "NOT_FOUND", ErrorKind::InvalidRequest),
        (500, "INTERNAL", ErrorKind::Provider),
        (503, "UNAVAILABLE", ErrorKind::Overloaded),
        (504, "DEADLINE_EXCEEDED", ErrorKind::Timeout),
    ] {
        let said = json!({"code": status, "message": "why", "status": name});
        assert_eq!(refused(status, said.clone()).kind(), kind, "{name}");
        let listed = codec().decode(json!([{"error": said}]).to_string().as_bytes()).expect_err(name);
        assert_eq!((listed.kind(), listed.message()), (kind, "why"), "{name}");
    }
    let key = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let error = refused(400, json!({"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": key}));
    assert_eq!(error.kind(), ErrorKind::Authentication);
    let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let error = refused(400, json!({"code": 400, "message": long, "status": "INVALID_ARGUMENT"}));
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
}

#[test]
fn a_prompt_that_was_refused_is_an_error() {
    let feedback = json!({"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "not this"});
    let body = json!({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3}});
    let whole = codec().decode(body.to_string().as_bytes()).expect_err("refused");
    for error in [whole, try_stream(&[body]).expect_err("refused")] {
        assert_eq!((error.kind(), error.retry()), (ErrorKind::ContentFiltered, Retry::Permanent));
        assert!(error.message().contains("PROHIBITED_CONTENT: not this"), "{error}");
    }
    let mut harmless = response(&[text("a")], Some("STOP"));
    harmless["promptFeedback"] = json!({"safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT"}]});
    let answered = codec().decode(harmless.to_string().as_bytes()).expect("an answer");
    assert_eq!(answered.details["promptFeedback"], harmless["promptFeedback"]);
}

#[test]
fn garbage_is_not_an_answer() {
    for body in ["", "{", "null", "[]", "{}", r#"{"candidates":[]}"#, r#"{"candidates":7}"#, "[7]", "\u{0}\u{1}"] {
        let error = codec().decode(body.as_bytes()).expect_err(body);
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Protocol, true), "{body}");
    }
    let page = codec().decode("\u{feff} <!DOCTYPE html><html>".as_bytes()).expect_err("a page");
    assert_eq!((page.kind(), page.is_retryable()), (ErrorKind::Protocol, false));
}

#[test]
fn a_cut_stream_is_truncated_and_not_an_answer() {
    for frames in [vec![], vec![response(&[text("a")], None)]] {
        let error = try_stream(&frames).expect_err("cut");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Truncated, true));
    }
    let mut decoder = codec().decoder(true);
    let mut push = |data: &str| {
        decoder.frame(data, &mut Vec::new()).expect("a frame");
        decoder.progress()
    };
    assert_eq!(push(&response(&[text("a")], None).to_string()), Progress::Open);
    assert_eq!(push(&response(&[], Some("STOP")).to_string()), Progress::Complete);
    assert_eq!(push("[DONE]"), Progress::Ended, "what some proxies say");
}
