//! Anthropic Messages in the envelope of Amazon Bedrock.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{AnthropicCodec, Providers, RequestReader, conformance::Samples};

use super::{
    Row,
    anthropic::{BEGIN, calls, searching, start, text, text_delta},
};

pub(super) const ROW: Row = Row { wire: "anthropic-bedrock", codec, samples };

fn codec() -> Arc<dyn RequestReader> {
    let bedrock = Providers::builtin().find("bedrock").expect("is known").clone().with("region", "us-east-1");
    let profile = bedrock.anthropic.expect("it serves Claude");
    Arc::new(AnthropicCodec::new("anthropic.claude-opus-4-6-v1", profile).expect("a codec"))
}

fn samples() -> Samples {
    let begun = start(0, r#"{"type":"text","text":""}"#);
    let throttled = r#"{"error":{"type":"throttlingException","message":"Too many requests"}}"#;
    let unavailable = r#"{"error":{"type":"serviceUnavailableException","message":"Overloaded"}}"#;
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(searching())
        .refusal(400, r#"{"message":"The provided model identifier is invalid."}"#, ErrorKind::InvalidRequest)
        .refusal(400, r#"{"message":"prompt is too long: 210000 tokens > 200000 maximum"}"#, ErrorKind::ContextOverflow)
        .refusal(403, r#"{"message":"The security token included in the request is invalid."}"#, ErrorKind::Authentication)
        .refusal(429, r#"{"message":"Too many requests, please wait."}"#, ErrorKind::RateLimited)
        .refusal(503, r#"{"message":"Overloaded."}"#, ErrorKind::Overloaded)
        .interruption([BEGIN, &begun, &text_delta(0, "Hel"), throttled], ErrorKind::RateLimited)
        .interruption([BEGIN, &begun, &text_delta(0, "Hel"), unavailable], ErrorKind::Overloaded)
        .request(r#"{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["interleaved-thinking-2025-05-14"],"max_tokens":99,"system":"Be brief.","messages":[{"role":"user","content":"Hello"}],"temperature":0.5,"top_k":5}"#)
        .request(concat!(
            r#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":4096,"#,
            r#""messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"Where?"}]},"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Let me see.","signature":"s=="},{"type":"tool_use","id":"toolu_1","name":"look","input":{"at":1.50}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"here"}],"is_error":true},{"type":"text","text":"And now?"}]}],"#,
            r#""tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"}}],"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}"#,
        ))
}
