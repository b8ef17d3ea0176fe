//! Ollama's own chat.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    OllamaCodec, OllamaProfile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "ollama-chat", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    Arc::new(OllamaCodec::new("m", OllamaProfile::compatible("acme", "http://acme.test")).expect("a codec"))
}

const HALF: &str =
    r#"{"model":"m","created_at":"2026-01-02T03:04:05Z","message":{"role":"assistant","content":"Hel"},"done":false}"#;

fn samples() -> Samples {
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(calls_without_ids())
        .refusal(400, r#"{"error":"\"m\" does not support thinking"}"#, ErrorKind::InvalidRequest)
        .refusal(400, r#"{"error":"the input length exceeds the context length"}"#, ErrorKind::ContextOverflow)
        .refusal(401, r#"{"error":"unauthorized","signin_url":"https://acme.test/connect"}"#, ErrorKind::Authentication)
        .refusal(404, r#"{"error":"model 'm' not found"}"#, ErrorKind::InvalidRequest)
        .refusal(500, r#"{"error":"model runner has unexpectedly stopped"}"#, ErrorKind::Provider)
        .refusal(503, r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#, ErrorKind::Overloaded)
        .interruption([HALF, r#"{"error":"model runner has unexpectedly stopped"}"#], ErrorKind::Provider)
        .interruption([HALF, r#"{"error":"server busy, please try again","status":503}"#], ErrorKind::Overloaded)
        .request(r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}],"think":true,"options":{"temperature":0.5,"num_ctx":8192,"num_predict":-1},"keep_alive":"10m","stream":true}"#)
        .request(concat!(
            r#"{"model":"m","messages":[{"role":"user","content":"Where?","images":["aGk="]},"#,
            r#"{"role":"assistant","content":"","thinking":"I look.","tool_calls":[{"function":{"name":"look","arguments":{"at":1.50}}},{"function":{"name":"look","arguments":{}}}]},"#,
            r#"{"role":"tool","content":"there","tool_name":"look"},{"role":"tool","content":"nowhere","tool_name":"look"},"#,
            r#"{"role":"assistant","content":""},{"role":"user","content":"Go on","x":1}],"#,
            r#""tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{}}}}],"#,
            r#""format":{"type":"object"},"think":"high","options":{"stop":["END"],"seed":7,"top_p":0.5,"num_predict":99},"keep_alive":0,"logprobs":true,"stream":false}"#,
        ))
}

fn text() -> Answer {
    let said = [r#""content":"Hello, ""#, r#""content":"Zürich 😀""#, r#""content":"!""#];
    answer("text", r#"{"role":"assistant","content":"Hello, Zürich 😀!"}"#, "length", &said)
}

fn calls() -> Answer {
    let (a, b) = (
        r#"{"id":"call_a","function":{"index":0,"name":"look","arguments":{"at":"Zürich"}}}"#,
        r#"{"id":"call_b","function":{"index":1,"name":"look","arguments":{}}}"#,
    );
    let turn = format!(r#"{{"role":"assistant","content":"I look.","thinking":"Let me see.","tool_calls":[{a},{b}]}}"#);
    let (a, b) = (format!(r#""content":"","tool_calls":[{a}]"#), format!(r#""content":"","tool_calls":[{b}]"#));
    let (one, two) = (r#""content":"","thinking":"Let me ""#, r#""content":"","thinking":"see.""#);
    answer("thoughts, a text and two calls", &turn, "stop", &[one, two, r#""content":"I look.""#, &a, &b])
}

fn calls_without_ids() -> Answer {
    let calls = r#""content":"","tool_calls":[{"function":{"name":"look","arguments":{"at":1.50}}}]"#;
    answer("a call of an old server", &format!(r#"{{"role":"assistant",{calls}}}"#), "stop", &[calls])
}

/// `said` holds the message fields of each event. The last event of an answer is empty.
fn answer(name: &str, turn: &str, finish: &str, said: &[&str]) -> Answer {
    let head = r#"{"model":"m","created_at":"2026-01-02T03:04:05.678Z","message":"#;
    let end = format!(
        r#","done":true,"done_reason":"{finish}","total_duration":9,"load_duration":1,"prompt_eval_count":10,"prompt_eval_duration":2,"eval_count":5,"eval_duration":3}}"#
    );
    let events = said.iter().map(|said| format!(r#"{head}{{"role":"assistant",{said}}},"done":false}}"#));
    let last = format!(r#"{head}{{"role":"assistant","content":""}}{end}"#);
    Answer::new(name, format!("{head}{turn}{end}"), turn).streamed(events.chain([last]))
}
