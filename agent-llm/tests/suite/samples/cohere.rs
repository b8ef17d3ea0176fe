//! Cohere's Chat, version 2.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    CohereCodec, CohereProfile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "cohere-chat", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    Arc::new(CohereCodec::new("m", CohereProfile::compatible("acme", "http://acme.test/v2")).expect("a codec"))
}

fn samples() -> Samples {
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(thinking())
        .answer(citations())
        .refusal(400, r#"{"id":"r1","message":"invalid request: bad role"}"#, ErrorKind::InvalidRequest)
        .refusal(400, r#"{"message":"too many tokens: the total number of tokens in the prompt exceeds the limit"}"#, ErrorKind::ContextOverflow)
        .refusal(401, r#"{"message":"invalid api token"}"#, ErrorKind::Authentication)
        .refusal(404, r#"{"id":"r1","message":"model 'm' not found"}"#, ErrorKind::InvalidRequest)
        .refusal(429, r#"{"message":"You are using a Trial key, which is limited to 20 calls a minute."}"#, ErrorKind::RateLimited)
        .refusal(503, r#"{"message":"overloaded"}"#, ErrorKind::Overloaded)
        .interruption([START, r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"out of order"}}"#], ErrorKind::Provider)
        .interruption([START, r#"{"id":"r1","message":"too many tokens"}"#], ErrorKind::ContextOverflow)
        .interruption([START, r#"{"id":"r1","message":"overloaded","status_code":503}"#], ErrorKind::Overloaded)
        .request(r#"{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}],"temperature":0.5,"p":0.75,"documents":[{"id":"d1","data":{"text":"x"}}],"safety_mode":"STRICT","stream":true}"#)
        .request(concat!(
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"Where?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk=","detail":"low"}}]},"#,
            r#"{"role":"assistant","tool_plan":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\": 1.50}"}}],"citations":[]},"#,
            r#"{"role":"tool","tool_call_id":"c1","content":[{"type":"document","document":{"data":"{\"x\": 1}"}}]}],"#,
            r#""tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{}}}}],"#,
            r#""tool_choice":"REQUIRED","strict_tools":true,"thinking":{"type":"enabled","token_budget":77},"stop_sequences":["END"],"seed":7,"#,
            r#""response_format":{"type":"json_object","json_schema":{"type":"object"}},"stream":false}"#,
        ))
}

const START: &str = r#"{"type":"message-start","id":"r1","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#;

const USAGE: &str = r#""usage":{"billed_units":{"input_tokens":6,"output_tokens":5},"cached_tokens":4,"tokens":{"input_tokens":10,"output_tokens":5}}"#;

fn text() -> Answer {
    answer(
        "text",
        r#"{"role":"assistant","content":[{"type":"text","text":"Hello, Zürich 😀!"}]}"#,
        "COMPLETE",
        &[
            r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello, "}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Zürich 😀"}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"!"}}}}"#,
            r#"{"type":"content-end","index":0}"#,
        ],
    )
}

fn calls() -> Answer {
    let turn = concat!(
        r#"{"role":"assistant","tool_plan":"I look twice.","tool_calls":["#,
        r#"{"id":"look_a","type":"function","function":{"name":"look","arguments":"{\"at\": \"Zürich\"}"}},"#,
        r#"{"id":"look_b","type":"function","function":{"name":"look","arguments":"{}"}}]}"#,
    );
    answer(
        "a plan and two calls",
        turn,
        "TOOL_CALL",
        &[
            r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I look "}}}"#,
            r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"twice."}}}"#,
            r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"look_a","type":"function","function":{"name":"look","arguments":""}}}}}"#,
            r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"at\": \"Zü"}}}}}"#,
            r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"rich\"}"}}}}}"#,
            r#"{"type":"tool-call-end","index":0}"#,
            r#"{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"look_b","type":"function","function":{"name":"look","arguments":""}}}}}"#,
            r#"{"type":"tool-call-delta","index":1,"delta":{"message":{"tool_calls":{"function":{"arguments":"{}"}}}}}"#,
            r#"{"type":"tool-call-end","index":1}"#,
        ],
    )
}

fn thinking() -> Answer {
    let turn = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Let me see."},{"type":"text","text":"Here."}]}"#;
    answer(
        "thoughts among the contents",
        turn,
        "COMPLETE",
        &[
            r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"Let me "}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"see."}}}}"#,
            r#"{"type":"content-end","index":0}"#,
            r#"{"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":"Here"}}}}"#,
            r#"{"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"."}}}}"#,
        ],
    )
}

fn citations() -> Answer {
    let cited = r#"{"start":0,"end":5,"text":"Sunny","sources":[{"type":"document","id":"d1","document":{"id":"d1","title":"Weather","text":"It is sunny."}}],"type":"TEXT_CONTENT"}"#;
    let turn = format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"Sunny."}}],"citations":[{cited}]}}"#);
    let citation = format!(r#"{{"type":"citation-start","index":0,"delta":{{"message":{{"citations":{cited}}}}}}}"#);
    answer(
        "a text with its source",
        &turn,
        "MAX_TOKENS",
        &[
            r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":"Sunny"}}}}"#,
            &citation,
            r#"{"type":"citation-end","index":0}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"."}}}}"#,
            r#"{"type":"content-end","index":0}"#,
        ],
    )
}

fn answer(name: &str, turn: &str, finish: &str, events: &[&str]) -> Answer {
    let whole = format!(r#"{{"id":"r1","message":{turn},"finish_reason":"{finish}",{USAGE}}}"#);
    let end = format!(r#"{{"type":"message-end","delta":{{"finish_reason":"{finish}",{USAGE}}}}}"#);
    let events = events.iter().map(|event| (*event).to_owned());
    Answer::new(name, whole, turn)
        .streamed([START.to_owned()].into_iter().chain(events).chain([end, "[DONE]".to_owned()]))
}
