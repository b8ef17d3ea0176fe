//! Anthropic Messages.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    AnthropicCodec, AnthropicProfile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "anthropic-messages", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    let profile = AnthropicProfile::compatible("acme", "http://acme.test");
    Arc::new(AnthropicCodec::new("claude-opus-4-6", profile).expect("a codec"))
}

fn samples() -> Samples {
    let begun = start(0, r#"{"type":"text","text":""}"#);
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let interrupted = [BEGIN, &begun, &text_delta(0, "Hel"), overloaded];
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(searching())
        .refusal(400, refusal("invalid_request_error", "messages: at least one message is required"), ErrorKind::InvalidRequest)
        .refusal(400, refusal("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), ErrorKind::ContextOverflow)
        .refusal(401, refusal("authentication_error", "invalid x-api-key"), ErrorKind::Authentication)
        .refusal(413, refusal("request_too_large", "Request exceeds the maximum size"), ErrorKind::ContextOverflow)
        .refusal(429, refusal("rate_limit_error", "Slow down."), ErrorKind::RateLimited)
        .refusal(529, refusal("overloaded_error", "Overloaded"), ErrorKind::Overloaded)
        .interruption(interrupted, ErrorKind::Overloaded)
        .interruption([refusal("rate_limit_error", "Slow down.")], ErrorKind::RateLimited)
        .request(r#"{"model":"claude-opus-4-6","max_tokens":99,"system":"Be brief.","messages":[{"role":"user","content":"Hello"}],"temperature":0.5,"top_k":5,"metadata":{"user_id":"7"}}"#)
        .request(concat!(
            r#"{"model":"claude-opus-4-6","max_tokens":99,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"#,
            r#""messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"Where?"}]},"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Let me see.","signature":"s=="},{"type":"tool_use","id":"toolu_1","name":"look","input":{"at":1.50}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"here"}],"is_error":true},{"type":"text","text":"And now?"}]}],"#,
            r#""tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"},"strict":true},{"type":"web_search_20250305","name":"web_search","max_uses":2}],"#,
            r#""tool_choice":{"type":"any","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":1024},"stream":true}"#,
        ))
}

pub(super) const BEGIN: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":2,"output_tokens":1}}}"#;

fn refusal(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#)
}

pub(super) fn text() -> Answer {
    let turn = r#"[{"type":"text","text":"Hello, Zürich 😀!"}]"#;
    let deltas = ["Hello, ", "Zürich 😀", "!"].map(|delta| text_delta(0, delta));
    let begin = [start(0, r#"{"type":"text","text":""}"#), r#"{"type":"ping"}"#.to_owned()];
    answer("text", turn, "end_turn", begin.into_iter().chain(deltas).chain([stop(0)]))
}

pub(super) fn calls() -> Answer {
    let turn = concat!(
        r#"[{"type":"tool_use","id":"toolu_a","name":"look","input":{"at":"Zürich"}},"#,
        r#"{"type":"tool_use","id":"toolu_b","name":"look","input":{},"caller":{"type":"direct"}}]"#,
    );
    let events = [
        start(0, r#"{"type":"tool_use","id":"toolu_a","name":"look","input":{}}"#),
        input_delta(0, ""),
        input_delta(0, r#"{\"at\":"#),
        input_delta(0, r#"\"Zürich\"}"#),
        stop(0),
        start(1, r#"{"type":"tool_use","id":"toolu_b","name":"look","input":{},"caller":{"type":"direct"}}"#),
        input_delta(1, "{}"),
        stop(1),
    ];
    answer("two calls", turn, "tool_use", events)
}

pub(super) fn searching() -> Answer {
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"type":"web_search_result","url":"https://a.test/z","title":"Z","encrypted_content":"e1"}]}"#;
    let citation = r#"{"type":"web_search_result_location","url":"https://a.test/z","title":"Z","cited_text":"z","encrypted_index":"e2"}"#;
    let turn = format!(
        concat!(
            r#"[{{"type":"thinking","thinking":"Let me see.","signature":"s=="}},"#,
            r#"{{"type":"redacted_thinking","data":"aGlkZGVu"}},"#,
            r#"{{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{{"query":"z"}}}},"#,
            r#"{},{{"type":"text","text":"Here.","citations":[{}]}}]"#,
        ),
        found, citation
    );
    let events = [
        start(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
        delta(0, r#"{"type":"thinking_delta","thinking":"Let me "}"#),
        delta(0, r#"{"type":"thinking_delta","thinking":"see."}"#),
        delta(0, r#"{"type":"signature_delta","signature":"s=="}"#),
        stop(0),
        start(1, r#"{"type":"redacted_thinking","data":"aGlkZGVu"}"#),
        stop(1),
        start(2, r#"{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}"#),
        input_delta(2, r#"{\"query\":\"z\"}"#),
        stop(2),
        start(3, found),
        stop(3),
        start(4, r#"{"type":"text","text":"","citations":[]}"#),
        delta(4, &format!(r#"{{"type":"citations_delta","citation":{citation}}}"#)),
        text_delta(4, "Here."),
        stop(4),
    ];
    answer("thinking, a search, and a text with its source", &turn, "end_turn", events)
}

pub(super) fn start(at: u32, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{at},"content_block":{block}}}"#)
}

fn delta(at: u32, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{at},"delta":{delta}}}"#)
}

pub(super) fn text_delta(at: u32, text: &str) -> String {
    delta(at, &format!(r#"{{"type":"text_delta","text":"{text}"}}"#))
}

fn input_delta(at: u32, escaped: &str) -> String {
    delta(at, &format!(r#"{{"type":"input_json_delta","partial_json":"{escaped}"}}"#))
}

fn stop(at: u32) -> String {
    format!(r#"{{"type":"content_block_stop","index":{at}}}"#)
}

fn answer(name: &str, turn: &str, reason: &str, events: impl IntoIterator<Item = String>) -> Answer {
    let usage = r#"{"input_tokens":10,"cache_read_input_tokens":2,"output_tokens":5}"#;
    let stop = format!(r#""stop_reason":"{reason}","stop_sequence":null"#);
    let whole = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":{turn},{stop},"usage":{usage}}}"#
    );
    let end = [
        format!(r#"{{"type":"message_delta","delta":{{{stop}}},"usage":{{"output_tokens":5}}}}"#),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    Answer::new(name, whole, turn).streamed(std::iter::once(BEGIN.to_owned()).chain(events).chain(end))
}
