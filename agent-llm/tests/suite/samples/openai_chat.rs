//! OpenAI Chat Completions.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    OpenAiChatCodec, Profile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "openai-chat", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    Arc::new(OpenAiChatCodec::new("m", Profile::compatible("acme", "http://acme.test/v1")).expect("a codec"))
}

fn samples() -> Samples {
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(thinking())
        .refusal(400, r#"{"error":{"message":"Bad role.","type":"invalid_request_error","code":null}}"#, ErrorKind::InvalidRequest)
        .refusal(400, r#"{"error":{"message":"Too long.","code":"context_length_exceeded"}}"#, ErrorKind::ContextOverflow)
        .refusal(401, r#"{"error":{"message":"No such key.","code":"invalid_api_key"}}"#, ErrorKind::Authentication)
        .refusal(429, r#"{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}"#, ErrorKind::RateLimited)
        .refusal(429, r#"{"error":{"message":"No credit.","code":"insufficient_quota"}}"#, ErrorKind::Quota)
        .refusal(503, r#"{"error":{"message":"Busy.","type":"server_error"}}"#, ErrorKind::Overloaded)
        .interruption([delta(r#"{"content":"Hel"}"#).as_str(), OVERLOADED], ErrorKind::Overloaded)
        .interruption([r#"{"error":{"message":"Too long.","code":"context_length_exceeded"}}"#], ErrorKind::ContextOverflow)
        .request(r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello","name":"ann"}],"temperature":0.5,"logit_bias":{"7":-100}}"#)
        .request(concat!(
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Where?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"low"}}]},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\": 1.50}"}}],"vendor":{"x":1}},"#,
            r#"{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"here"}]}],"#,
            r#""tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{}},"strict":true}}],"#,
            r#""tool_choice":"required","stream":true,"stream_options":{"include_usage":true},"n":1,"user":"ann"}"#,
        ))
}

const OVERLOADED: &str = r#"{"error":{"message":"The server is overloaded.","type":"overloaded_error","code":null}}"#;

const USAGE: &str = r#""usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4}}"#;

fn text() -> Answer {
    answer(
        "text",
        r#"{"role":"assistant","content":"Hello, Zürich 😀!"}"#,
        "stop",
        &[
            r#"{"role":"assistant","content":""}"#,
            r#"{"content":"Hello, "}"#,
            r#"{"content":"Zürich 😀"}"#,
            r#"{"content":"!"}"#,
        ],
    )
}

fn calls() -> Answer {
    let turn = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":["#,
        r#"{"id":"call_a","type":"function","function":{"name":"look","arguments":"{\"at\": \"Zürich\"}"}},"#,
        r#"{"id":"call_b","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"signature":"s=="}}]}"#,
    );
    answer(
        "two calls",
        turn,
        "tool_calls",
        &[
            r#"{"role":"assistant","content":null}"#,
            r#"{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"look","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\": \"Zü"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"signature":"s=="}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"rich\"}"}}]}"#,
        ],
    )
}

fn thinking() -> Answer {
    let turn = concat!(
        r#"{"role":"assistant","content":"Here.","reasoning":"Let me see.","#,
        r#""reasoning_details":[{"type":"reasoning.text","index":0,"text":"Let me see.","signature":"s=="}],"vendor":"ab"}"#,
    );
    answer(
        "reasoning with a signature, and a field of the vendor's",
        turn,
        "stop",
        &[
            r#"{"role":"assistant","reasoning":"Let me ","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Let me "}]}"#,
            r#"{"reasoning":"see.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"see."}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s=="}]}"#,
            r#"{"content":"Here.","vendor":"a"}"#,
            r#"{"vendor":"b"}"#,
        ],
    )
}

fn answer(name: &str, turn: &str, finish: &str, deltas: &[&str]) -> Answer {
    let choice = format!(r#"{{"index":0,"message":{turn},"finish_reason":"{finish}"}}"#);
    let whole = format!(r#"{{"id":"r1","object":"chat.completion","model":"m-1","choices":[{choice}],{USAGE}}}"#);
    let last =
        format!(r#"{{"id":"r1","model":"m-1","choices":[{{"index":0,"delta":{{}},"finish_reason":"{finish}"}}]}}"#);
    let usage = format!(r#"{{"id":"r1","model":"m-1","choices":[],{USAGE}}}"#);
    let deltas = deltas.iter().map(|delta| self::delta(delta));
    Answer::new(name, whole, turn).streamed(deltas.chain([last, usage, "[DONE]".to_owned()]))
}

fn delta(delta: &str) -> String {
    format!(r#"{{"id":"r1","model":"m-1","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}
