//! Gemini's `generateContent`.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    GeminiCodec, GeminiProfile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "gemini-generate", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    let profile = GeminiProfile::compatible("acme", "http://acme.test/v1beta");
    Arc::new(GeminiCodec::new("m", profile).expect("a codec"))
}

fn samples() -> Samples {
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(thinking())
        .answer(tools())
        .refusal(400, error(400, "INVALID_ARGUMENT", "Bad role.", ""), ErrorKind::InvalidRequest)
        .refusal(400, error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""), ErrorKind::ContextOverflow)
        .refusal(400, error(400, "INVALID_ARGUMENT", "No such key.", NO_KEY), ErrorKind::Authentication)
        .refusal(403, error(403, "PERMISSION_DENIED", "Not yours.", ""), ErrorKind::Authentication)
        .refusal(429, error(429, "RESOURCE_EXHAUSTED", "Slow down.", ""), ErrorKind::RateLimited)
        .refusal(503, error(503, "UNAVAILABLE", "Busy.", ""), ErrorKind::Overloaded)
        .interruption([piece(r#"{"text":"Hel"}"#), error(503, "UNAVAILABLE", "Busy.", "")], ErrorKind::Overloaded)
        .interruption([r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#], ErrorKind::ContentFiltered)
        .request(r#"{"system_instruction":{"parts":[{"text":"Be brief."}]},"contents":[{"parts":[{"text":"Hello"}]}],"generation_config":{"temperature":0.5},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}]}"#)
        .request(concat!(
            r#"{"contents":[{"role":"user","parts":[{"text":"Where?"},{"inline_data":{"mime_type":"image/png","data":"aGk="}},{"fileData":{"fileUri":"gs://v","mimeType":"video/mp4"},"videoMetadata":{"fps":1}}]},"#,
            r#"{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":1.50}},"thoughtSignature":"cw=="},{"functionCall":{"name":"look","args":{}}}]},"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"here"}}},{"functionResponse":{"name":"look","response":{"error":"gone"}}},{"text":"and?"}]}],"#,
            r#""tools":[{"codeExecution":null,"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"type":"OBJECT"},"response":{"type":"STRING"}}]},{"googleSearch":{}}],"#,
            r#""toolConfig":{"functionCallingConfig":{"mode":"VALIDATED"}},"generationConfig":{"temperature":0.5,"topK":3,"thinkingConfig":{"thinking_budget":0}},"cachedContent":"c"}"#,
        ))
}

const NO_KEY: &str = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}"#;

const REST: &str = r#""usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":15},"modelVersion":"m-1","responseId":"r1""#;

fn text() -> Answer {
    answer(
        "text",
        r#"{"text":"Hello, Zürich 😀!"}"#,
        &[r#"{"text":"Hello, "}"#, r#"{"text":"Zürich 😀"}"#, r#"{"text":"!"}"#],
    )
}

fn calls() -> Answer {
    let one = r#"{"functionCall":{"id":"a","name":"look","args":{"at":"Zürich"}},"thoughtSignature":"cw=="}"#;
    let other = r#"{"functionCall":{"id":"b","name":"look","args":{}}}"#;
    answer("two calls", &format!("{one},{other}"), &[one, other])
}

fn thinking() -> Answer {
    let parts = concat!(
        r#"{"text":"Let me see.","thought":true},{"text":"He","thoughtSignature":"cw=="},{"text":"re."},"#,
        r#"{"text":"","thoughtSignature":"dA=="}"#
    );
    answer(
        "thoughts, a text that is signed within, and a signature that stands alone",
        parts,
        &[
            r#"{"text":"Let me ","thought":true}"#,
            r#"{"text":"see.","thought":true}"#,
            r#"{"text":"He","thoughtSignature":"cw=="}"#,
            r#"{"text":"r"}"#,
            r#"{"text":"e."}"#,
            r#"{"text":""}"#,
            r#"{"text":"","thoughtSignature":"dA=="}"#,
        ],
    )
}

fn tools() -> Answer {
    let code = r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#;
    let outcome = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#;
    let image = r#"{"inlineData":{"mimeType":"image/png","data":"aGk="}}"#;
    let parts = format!(r#"{{"text":"See:"}},{code},{outcome},{{"text":"so."}},{image}"#);
    answer("what the provider ran", &parts, &[r#"{"text":"See:"}"#, code, outcome, r#"{"text":"so."}"#, image])
}

fn answer(name: &str, parts: &str, pieces: &[&str]) -> Answer {
    let turn = format!(r#"{{"parts":[{parts}],"role":"model"}}"#);
    let whole = format!(r#"{{"candidates":[{{"content":{turn},"finishReason":"STOP","index":0}}],{REST}}}"#);
    let last = format!(r#"{{"candidates":[{{"content":{{"role":"model"}},"finishReason":"STOP","index":0}}],{REST}}}"#);
    Answer::new(name, whole, turn).streamed(pieces.iter().map(|part| piece(part)).chain([last]))
}

fn piece(part: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{part}],"role":"model"}},"index":0}}],{REST}}}"#)
}

fn error(code: u16, status: &str, message: &str, detail: &str) -> String {
    format!(r#"{{"error":{{"code":{code},"message":"{message}","status":"{status}","details":[{detail}]}}}}"#)
}
