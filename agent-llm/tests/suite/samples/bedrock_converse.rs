//! Amazon Bedrock's Converse.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    BedrockCodec, BedrockProfile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "bedrock-converse", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    let profile = BedrockProfile::compatible("acme", "http://acme.test");
    Arc::new(BedrockCodec::new("us.anthropic.claude-opus-4-6-v1", profile).expect("a codec"))
}

fn samples() -> Samples {
    let throttled = r#"{"error":{"type":"throttlingException","message":"Too many requests"}}"#;
    let unavailable = r#"{"error":{"type":"serviceUnavailableException","message":"Overloaded"}}"#;
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(thinking())
        .answer(served())
        .refusal(400, r#"{"message":"The provided model identifier is invalid."}"#, ErrorKind::InvalidRequest)
        .refusal(400, r#"{"message":"Input is too long for requested model."}"#, ErrorKind::ContextOverflow)
        .refusal(400, r#"{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"It expired."}"#, ErrorKind::Authentication)
        .refusal(403, r#"{"message":"The security token included in the request is invalid."}"#, ErrorKind::Authentication)
        .refusal(424, r#"{"message":"Failed.","type":"ModelErrorException"}"#, ErrorKind::Provider)
        .refusal(429, r#"{"message":"Too many requests, please wait."}"#, ErrorKind::RateLimited)
        .refusal(503, r#"{"message":"Overloaded."}"#, ErrorKind::Overloaded)
        .interruption([BEGIN, &text_delta(0, "Hel"), throttled], ErrorKind::RateLimited)
        .interruption([BEGIN, &text_delta(0, "Hel"), unavailable], ErrorKind::Overloaded)
        .request(r#"{"messages":[{"role":"user","content":[{"text":"Hello"}]}],"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}],"inferenceConfig":{"maxTokens":99,"temperature":0.5,"stopSequences":["END"]},"additionalModelRequestFields":{"top_k":5},"guardrailConfig":{"guardrailIdentifier":"g","guardrailVersion":"1"}}"#)
        .request(concat!(
            r#"{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"aGk="}}},{"document":{"format":"pdf","name":"a","source":{"s3Location":{"uri":"s3://a/b","bucketOwner":"1"}}}},{"text":"Where?"},{"cachePoint":{"type":"default","ttl":"1h"}}]},"#,
            r#"{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Let me see.","signature":"s=="}}},{"toolUse":{"toolUseId":"tooluse_1","name":"look","input":{"at":1.50}}}]},"#,
            r#"{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_1","content":[{"json":{"x":1}},{"text":"here"}],"status":"error"}},{"text":"And now?"},{"video":{"format":"mp4","source":{"bytes":"aGk="}}}]}],"#,
            r#""toolConfig":{"tools":[{"toolSpec":{"name":"look","description":"Looks.","inputSchema":{"json":{"type":"object"}},"strict":true}},{"cachePoint":{"type":"default"}},{"systemTool":{"name":"nova_grounding"}}],"toolChoice":{"any":{}}},"#,
            r#""additionalModelRequestFields":{"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}},"inferenceConfig":{},"#,
            r#""outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"a","schema":"{\"type\": \"object\"}"}}}}}"#,
        ))
}

const BEGIN: &str = r#"{"messageStart":{"role":"assistant","p":"abcd"}}"#;

fn text() -> Answer {
    let turn = r#"[{"text":"Hello, Zürich 😀!"}]"#;
    let deltas = ["Hello, ", "Zürich 😀", "!"].map(|delta| text_delta(0, delta));
    answer("text", turn, "end_turn", deltas.into_iter().chain([stop(0)]))
}

fn calls() -> Answer {
    let turn = concat!(
        r#"[{"toolUse":{"toolUseId":"tooluse_a","name":"look","input":{"at":"Zürich"}}},"#,
        r#"{"toolUse":{"toolUseId":"tooluse_b","name":"look","input":{},"type":"tool_use"}}]"#,
    );
    let events = [
        start(0, r#"{"toolUse":{"toolUseId":"tooluse_a","name":"look"}}"#),
        input_delta(0, ""),
        input_delta(0, r#"{\"at\":"#),
        input_delta(0, r#"\"Zürich\"}"#),
        stop(0),
        start(1, r#"{"toolUse":{"toolUseId":"tooluse_b","name":"look","type":"tool_use"}}"#),
        input_delta(1, "{}"),
        stop(1),
    ];
    answer("two calls", turn, "tool_use", events)
}

fn thinking() -> Answer {
    let citation = r#"{"title":"Z","sourceContent":[{"text":"z"}],"location":{"documentChar":{"documentIndex":0,"start":1,"end":2}}}"#;
    let turn = format!(
        concat!(
            r#"[{{"reasoningContent":{{"reasoningText":{{"text":"Let me see.","signature":"s=="}}}}}},"#,
            r#"{{"reasoningContent":{{"redactedContent":"aGlkZGVu"}}}},{{"text":"So: "}},"#,
            r#"{{"citationsContent":{{"citations":[{}],"content":[{{"text":"here."}}]}}}}]"#,
        ),
        citation
    );
    let events = [
        delta(0, r#"{"reasoningContent":{"text":"Let me "}}"#),
        delta(0, r#"{"reasoningContent":{"text":"see."}}"#),
        delta(0, r#"{"reasoningContent":{"signature":"s=="}}"#),
        stop(0),
        delta(1, r#"{"reasoningContent":{"redactedContent":"aGlkZGVu"}}"#),
        stop(1),
        text_delta(2, "So: "),
        stop(2),
        delta(3, &format!(r#"{{"citation":{citation}}}"#)),
        text_delta(3, "here."),
        stop(3),
    ];
    answer("thinking, and a text with its source", &turn, "end_turn", events)
}

fn served() -> Answer {
    let turn = concat!(
        r#"[{"toolUse":{"toolUseId":"t1","name":"nova_code_interpreter","input":{"snippet":"1+1"},"type":"server_tool_use"}},"#,
        r#"{"toolResult":{"toolUseId":"t1","status":"success","type":"nova_code_interpreter_result","content":[{"json":{"stdOut":"2"}}]}},"#,
        r#"{"text":"Two."}]"#,
    );
    let events = [
        start(0, r#"{"toolUse":{"toolUseId":"t1","name":"nova_code_interpreter","type":"server_tool_use"}}"#),
        input_delta(0, r#"{\"snippet\":\"1+1\"}"#),
        stop(0),
        start(1, r#"{"toolResult":{"toolUseId":"t1","status":"success","type":"nova_code_interpreter_result"}}"#),
        delta(1, r#"{"toolResult":[{"json":{"stdOut":"2"}}]}"#),
        stop(1),
        text_delta(2, "Two."),
        stop(2),
    ];
    answer("a tool that ran at the provider", turn, "end_turn", events)
}

fn start(at: u32, block: &str) -> String {
    format!(r#"{{"contentBlockStart":{{"contentBlockIndex":{at},"start":{block},"p":"ab"}}}}"#)
}

fn delta(at: u32, delta: &str) -> String {
    format!(r#"{{"contentBlockDelta":{{"contentBlockIndex":{at},"delta":{delta},"p":"abc"}}}}"#)
}

fn text_delta(at: u32, text: &str) -> String {
    delta(at, &format!(r#"{{"text":"{text}"}}"#))
}

fn input_delta(at: u32, escaped: &str) -> String {
    delta(at, &format!(r#"{{"toolUse":{{"input":"{escaped}"}}}}"#))
}

fn stop(at: u32) -> String {
    format!(r#"{{"contentBlockStop":{{"contentBlockIndex":{at}}}}}"#)
}

fn answer(name: &str, turn: &str, reason: &str, events: impl IntoIterator<Item = String>) -> Answer {
    let about = r#""usage":{"inputTokens":10,"outputTokens":5,"totalTokens":17,"cacheReadInputTokens":2},"metrics":{"latencyMs":7}"#;
    let whole = format!(
        r#"{{"output":{{"message":{{"role":"assistant","content":{turn}}}}},"stopReason":"{reason}",{about}}}"#
    );
    let end = [
        format!(r#"{{"messageStop":{{"stopReason":"{reason}","p":"abcdef"}}}}"#),
        format!(r#"{{"metadata":{{{about},"p":"a"}}}}"#),
    ];
    Answer::new(name, whole, turn).streamed(std::iter::once(BEGIN.to_owned()).chain(events).chain(end))
}
