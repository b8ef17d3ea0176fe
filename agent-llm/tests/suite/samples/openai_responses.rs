//! OpenAI Responses.

use std::sync::Arc;

use agent_core::ErrorKind;
use agent_llm::{
    OpenAiResponsesCodec, Profile, RequestReader,
    conformance::{Answer, Samples},
};

use super::Row;

pub(super) const ROW: Row = Row { wire: "openai-responses", codec, samples };

/// A codec without storage settings, so that a request without them is encoded unchanged.
fn codec() -> Arc<dyn RequestReader> {
    let mut profile = Profile::compatible("acme", "http://acme.test/v1");
    profile.responses.stateless = false;
    Arc::new(OpenAiResponsesCodec::new("m", profile).expect("a codec"))
}

fn samples() -> Samples {
    Samples::new()
        .answer(text())
        .answer(calls())
        .answer(searching())
        .refusal(400, r#"{"error":{"message":"Bad role.","type":"invalid_request_error","param":"input","code":null}}"#, ErrorKind::InvalidRequest)
        .refusal(400, r#"{"error":{"message":"Too long.","type":"invalid_request_error","code":"context_length_exceeded"}}"#, ErrorKind::ContextOverflow)
        .refusal(401, r#"{"detail":"Could not parse your authentication token."}"#, ErrorKind::Authentication)
        .refusal(429, r#"{"error":{"message":"Slow down.","code":"rate_limit_exceeded"}}"#, ErrorKind::RateLimited)
        .refusal(429, r#"{"error":{"message":"No credit.","code":"insufficient_quota"}}"#, ErrorKind::Quota)
        .interruption([CREATED, r#"{"type":"error","sequence_number":2,"code":"rate_limit_exceeded","message":"Slow down.","param":null}"#], ErrorKind::RateLimited)
        .interruption([CREATED, r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Too long."}}"#], ErrorKind::ContextOverflow)
        .interruption([CREATED, r#"{"type":"response.failed","response":{"id":"r1","status":"failed","error":{"code":"server_is_overloaded","message":"Busy."}}}"#], ErrorKind::Overloaded)
        .request(r#"{"model":"m","input":"Hello","instructions":"Be brief.","reasoning":{"effort":"low","summary":"auto"},"store":true,"previous_response_id":"resp_0","text":{"verbosity":"low"}}"#)
        .request(concat!(
            r#"{"model":"m","input":[{"role":"developer","content":"Be brief."},{"type":"message","role":"user","content":[{"type":"input_text","text":"Where?"},{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"low"},{"type":"input_file","file_id":"file_1"}]},"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"{\"at\": 1.50}","status":"completed"},"#,
            r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"here"}]},{"type":"item_reference","id":"msg_7"},{"role":"assistant","content":"Here."},{"role":"user","content":"And there?"}],"#,
            r#""tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"type":"object","properties":{}},"strict":true},{"type":"web_search"},{"type":"custom","name":"sh","description":"Runs."}],"#,
            r#""tool_choice":{"type":"function","name":"look"},"parallel_tool_calls":false,"max_output_tokens":99,"stream":true,"include":["reasoning.encrypted_content"],"#,
            r#""text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"},"strict":true}},"metadata":{"a":"b"}}"#,
        ))
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"r1","object":"response","model":"m-1","status":"in_progress","output":[]}}"#;

fn text() -> Answer {
    let part = r#"{"type":"output_text","annotations":[],"logprobs":[],"text":"Hello, Zürich 😀!"}"#;
    let item =
        format!(r#"{{"id":"msg_1","type":"message","status":"completed","content":[{part}],"role":"assistant"}}"#);
    let begun = r#"{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}"#;
    let delta = |delta: &str| {
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"{delta}","logprobs":[],"obfuscation":"x7"}}"#
        )
    };
    let events = [
        added(0, begun),
        r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#.into(),
        delta("Hello, "),
        delta("Zürich 😀"),
        delta("!"),
        r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Hello, Zürich 😀!","logprobs":[]}"#.into(),
        format!(r#"{{"type":"response.content_part.done","item_id":"msg_1","output_index":0,"content_index":0,"part":{part}}}"#),
        done(0, &item),
    ];
    answer("text", &[item], events)
}

fn calls() -> Answer {
    let call = |id: &str, status: &str, arguments: &str| {
        format!(
            r#"{{"id":"fc_{id}","type":"function_call","status":"{status}","arguments":"{arguments}","call_id":"call_{id}","name":"look"}}"#
        )
    };
    let delta = |id: &str, at: u32, delta: &str| {
        format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_{id}","output_index":{at},"delta":"{delta}"}}"#
        )
    };
    let whole = [call("a", "completed", r#"{\"at\": \"Zürich\"}"#), call("b", "completed", "{}")];
    let events = [
        added(0, &call("a", "in_progress", "")),
        delta("a", 0, r#"{\"at\": \"Zü"#),
        added(1, &call("b", "in_progress", "")),
        delta("b", 1, "{}"),
        delta("a", 0, r#"rich\"}"#),
        r#"{"type":"response.function_call_arguments.done","item_id":"fc_b","output_index":1,"arguments":"{}"}"#.into(),
        done(1, &whole[1]),
        done(0, &whole[0]),
    ];
    answer("two calls", &whole, events)
}

fn searching() -> Answer {
    let summary = r#"[{"type":"summary_text","text":"Let me see."}]"#;
    let reasoning = |summary: &str| {
        format!(r#"{{"id":"rs_1","type":"reasoning","summary":{summary},"encrypted_content":"sealed"}}"#)
    };
    let search = |status: &str| {
        format!(
            r#"{{"id":"ws_1","type":"web_search_call","status":"{status}","action":{{"type":"search","query":"Zürich"}}}}"#
        )
    };
    let part = r#"{"type":"output_text","annotations":[{"type":"url_citation","start_index":0,"end_index":4,"url":"https://a.test/z","title":"Z"}],"text":"Here."}"#;
    let message = format!(
        r#"{{"id":"msg_1","type":"message","status":"completed","phase":"final_answer","content":[{part}],"role":"assistant"}}"#
    );
    let items = [reasoning(summary), search("completed"), message];
    let events = [
        added(0, &reasoning("[]")),
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Let me "}"#.into(),
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"see."}"#.into(),
        done(0, &items[0]),
        added(1, &search("in_progress")),
        r#"{"type":"response.web_search_call.searching","item_id":"ws_1","output_index":1}"#.into(),
        done(1, &items[1]),
        added(2, r#"{"id":"msg_1","type":"message","status":"in_progress","phase":"final_answer","content":[],"role":"assistant"}"#),
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":2,"content_index":0,"delta":"Here."}"#.into(),
        done(2, &items[2]),
    ];
    answer("reasoning, a search, and a text with its source", &items, events)
}

fn added(at: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.added","output_index":{at},"item":{item}}}"#)
}

fn done(at: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#)
}

fn answer(name: &str, items: &[String], events: impl IntoIterator<Item = String>) -> Answer {
    let turn = format!("[{}]", items.join(","));
    let usage = r#"{"input_tokens":12,"input_tokens_details":{"cached_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":17}"#;
    let whole = format!(
        r#"{{"id":"r1","object":"response","created_at":7,"model":"m-1","status":"completed","error":null,"incomplete_details":null,"output":{turn},"service_tier":"default","store":true,"usage":{usage}}}"#
    );
    let end = format!(r#"{{"type":"response.completed","sequence_number":99,"response":{whole}}}"#);
    Answer::new(name, whole, turn).streamed(std::iter::once(CREATED.to_owned()).chain(events).chain([end]))
}
