//! Round trip of requests: decoding and encoding.

use agent_core::{
    Block, ErrorKind, History, Message, Part, ToolChoice, message::MediaSource, model::Effort, testing::detached_run,
};
use agent_llm::{GeminiCodec, GeminiProfile, GeminiSchemas, ParsedRequest, RequestReader};
use serde_json::{Value, json};

use super::{
    common::encoded,
    support::{call, codec, signed, text, thought},
};

fn parse(body: &Value) -> ParsedRequest {
    codec().decode_request(body.to_string().as_bytes()).expect("a request")
}

fn again(codec: &impl RequestReader, body: &Value) -> Value {
    let parsed = codec.decode_request(body.to_string().as_bytes()).expect("a request");
    encoded(codec, &parsed.into_request(detached_run(History::default()).cx().clone()))
}

#[track_caller]
fn assert_kept(body: &Value) {
    assert_eq!(again(&codec(), body), *body);
}

fn said(parts: Value) -> Value {
    json!({"contents": [{"role": "user", "parts": parts}]})
}

fn result(name: &str, response: Value) -> Value {
    json!({"functionResponse": {"name": name, "response": response}})
}

#[test]
fn a_request_is_understood_and_kept() {
    let body = json!({
        "systemInstruction": {"role": "user", "parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "u"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]},
            {"role": "model", "parts": [signed(thought("hm")), text("a"), call("f", json!({"x": 1}))]},
            {"role": "user", "parts": [result("f", json!({"result": "done"}))]},
            {"parts": [{"text": "and?"}]},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}]},
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {
            "temperature": 1.0, "topP": 0.5, "maxOutputTokens": 7, "stopSequences": ["x"], "seed": 3, "candidateCount": 2,
            "thinkingConfig": {"includeThoughts": true, "thinkingBudget": 1024},
            "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
        },
        "safetySettings": null, "cachedContent": "c", "model": "models/gemini-2.5-flash",
    });
    assert_kept(&body);
    let parsed = parse(&body);
    assert_eq!((parsed.model.as_str(), parsed.stream), ("gemini-2.5-flash", false));
    assert_eq!(parsed.system.expect("a system prompt").text(), "s");
    let roles: Vec<_> = parsed.messages.iter().map(|m| (m.role(), m.text())).collect();
    let texts = [("user", "u"), ("assistant", "a"), ("tool", "done"), ("user", "and?")];
    assert_eq!(roles, texts.map(|(role, text)| (role, text.to_owned())));
    let Some(Message::User(question)) = parsed.messages.get(0) else { panic!("a question") };
    assert!(matches!(&question.parts()[1], Part::Image(m) if m.source == MediaSource::Base64("QUJD".into())));
    let turn = parsed.messages.get(1).and_then(Message::as_assistant).expect("a turn");
    assert!(matches!(&turn.blocks()[0], Block::Reasoning(r) if r.text == "hm"));
    let tools: Vec<_> = parsed.tools.iter().map(|t| (t.name.as_str(), t.is_server_side())).collect();
    assert_eq!(tools, [("f", false), ("googleSearch", true)]);
    let params = parsed.params;
    assert_eq!((params.temperature, params.top_p, params.max_tokens), (Some(1.0), Some(0.5), Some(7)));
    assert_eq!((params.seed, params.effort, &*params.stop), (Some(3), Some(Effort::Low), &["x".to_owned()][..]));
    assert_eq!(params.tool_choice, Some(ToolChoice::Tool("f".into())));
    assert_eq!(params.output.expect("a form").schema, json!({"type": "object"}));
    let left = json!({
        "generationConfig": {"candidateCount": 2}, "safetySettings": null, "cachedContent": "c",
        "model": "models/gemini-2.5-flash",
    });
    assert_eq!(Value::Object(params.extra), left, "what no parameter says");
}

#[test]
fn the_other_spelling_is_understood_and_kept() {
    let body = json!({
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "QUJD"}}]},
            {"role": "model", "parts": [{"function_call": {"id": "c", "name": "f", "args": {}}, "thought_signature": "s"}]},
            {"role": "user", "parts": [{"function_response": {"id": "c", "name": "f", "response": {"output": 1}}}]},
        ],
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}],
        "tool_config": {"function_calling_config": {"mode": "ANY"}},
        "generation_config": {"max_output_tokens": 7, "thinking_config": {"thinking_budget": 0}},
    });
    assert_kept(&body);
    let parsed = parse(&body);
    assert_eq!(parsed.system.expect("a system prompt").text(), "s");
    assert_eq!(parsed.tools[0].name, "f");
    let Some(Message::Tool(result)) = parsed.messages.get(2) else { panic!("a result") };
    assert_eq!((result.call_id(), result.parts()[0].as_text()), ("c", Some(r#"{"output":1}"#)));
}

#[test]
fn results_find_their_calls() {
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let user = |parts: Value| json!({"role": "user", "parts": parts});
    let contents = json!([
        user(json!([text("u")])),
        model(json!([call("f", json!({})), call("f", json!({})), call("g", json!({}))])),
        user(json!([result("f", json!({"result": "1"})), result("f", json!({"result": "2"})), result("g", json!({"error": "3"}))])),
        model(json!([call("f", json!({}))])),
        model(json!([call("g", json!({}))])),
        {"role": "function", "parts": [result("f", json!({"result": "4"}))]},
        user(json!([text("before"), result("g", json!({"result": "5"})), text("after")])),
        user(json!([text("next")])),
    ]);
    assert_kept(&json!({"contents": contents}));
    let parsed = parse(&json!({"contents": contents}));
    let results: Vec<_> = parsed.messages.iter().filter_map(Message::as_tool).collect();
    let texts: Vec<_> = results.iter().map(|r| (r.name(), r.parts()[0].as_text().expect("text"))).collect();
    assert_eq!(texts, [("f", "1"), ("f", "2"), ("g", "3"), ("f", "4"), ("g", "5")]);
    let failed: Vec<_> = results.iter().map(|r| r.is_error()).collect();
    assert_eq!(failed, [false, false, true, false, false]);
    let users: Vec<_> = parsed.messages.iter().filter(|m| m.role() == "user").map(Message::text).collect();
    assert_eq!(users, ["u", "after", "next"]);
}

#[test]
fn results_that_name_the_id_of_their_call_or_nothing_known_find_it_too() {
    let call = |id: &str, name: &str| json!({"functionCall": {"id": id, "name": name, "args": {}}});
    let found = |names: [&str; 2]| -> Vec<(String, String)> {
        let results: Vec<_> = names.iter().map(|name| result(name, json!({"result": name}))).collect();
        let contents = json!([
            {"role": "user", "parts": [text("u")]},
            {"role": "model", "parts": [call("c1", "f"), call("c2", "g")]},
            {"role": "user", "parts": results},
        ]);
        let parsed = parse(&json!({"contents": contents}));
        let results = parsed.messages.iter().filter_map(Message::as_tool);
        results.map(|r| (r.name().to_owned(), r.parts()[0].as_text().expect("text").to_owned())).collect()
    };
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(found(["c2", "c1"]), [pair("f", "c1"), pair("g", "c2")]);
    assert_eq!(found(["x", "y"]), [pair("f", "x"), pair("g", "y")]);
}

#[test]
fn results_that_are_edited_leave_their_neighbours_as_they_were() {
    let body = json!({"contents": [
        {"role": "user", "parts": [text("u")]},
        {"role": "model", "parts": [call("f", json!({})), call("g", json!({}))]},
        {"role": "user", "parts": [result("f", json!({"x": 1})), result("g", json!({"y": 2})), text("after")]},
    ]});
    let mut parsed = parse(&body);
    let shorten = |messages: &mut Vec<Message>| {
        let Message::Tool(result) = &mut messages[2] else { panic!("a result") };
        *result.parts_mut() = vec![Part::text("short")];
    };
    parsed.messages.edit(shorten).expect("still paired");
    let back = encoded(&codec(), &parsed.into_request(detached_run(History::default()).cx().clone()));
    let mut expected = body;
    expected["contents"][2]["parts"][0] = result("f", json!({"result": "short"}));
    assert_eq!(back, expected);
}

#[test]
fn tools_are_kept_as_they_were_put_together() {
    let declare = |name: &str| json!({"name": name, "parameters": {"type": "OBJECT"}, "response": {"type": "STRING"}});
    for tools in [
        json!([{"codeExecution": null, "functionDeclarations": [declare("f"), declare("g")]}]),
        json!([{"functionDeclarations": [declare("f")]}, {"googleSearch": {}}, {"functionDeclarations": [declare("g")]}]),
        json!([{"codeExecution": {}}, {"functionDeclarations": []}]),
        json!({"function_declarations": [declare("f")]}),
    ] {
        let mut body = said(json!([text("u")]));
        body["tools"] = tools;
        assert_kept(&body);
    }
}

#[test]
fn settings_that_no_parameter_can_say_are_kept() {
    for (name, value) in [
        (
            "toolConfig",
            json!({"functionCallingConfig": {"mode": "VALIDATED"}, "includeServerSideToolInvocations": true}),
        ),
        ("toolConfig", json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}})),
        ("toolConfig", json!({"functionCallingConfig": {"mode": "AUTO"}})),
        ("toolConfig", Value::Null),
        ("generationConfig", json!({})),
        ("generationConfig", json!({"temperature": "0.5", "topP": null, "maxOutputTokens": 1.5, "stopSequences": []})),
        ("generationConfig", json!({"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING"}})),
        ("generationConfig", json!({"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}})),
        ("generationConfig", json!({"thinkingConfig": {"thinkingBudget": 77}})),
        ("systemInstruction", json!("a text")),
        ("systemInstruction", Value::Null),
    ] {
        let mut body = said(json!([text("u")]));
        body[name] = value;
        assert_kept(&body);
        let mut profile = GeminiProfile::ai_studio();
        profile.schemas = GeminiSchemas::OpenApi;
        let older = GeminiCodec::new("gemini-2.5-flash", profile).expect("a codec");
        assert_eq!(again(&older, &body), body);
    }
}

#[test]
fn odd_contents_are_kept() {
    for contents in [
        json!([]),
        json!([{"parts": []}]),
        json!([{"role": "user"}, {"role": "model", "parts": []}, {"role": "model", "parts": null}]),
        json!([{"role": "user", "parts": [result("f", json!({"a": 1}))]}]),
        json!([{"role": "user", "parts": [{"strange": 1}, 7, {"text": "a", "videoMetadata": {"fps": 1}}]}]),
        json!([{"role": null, "parts": [text("a")], "more": [1]}]),
        json!({"parts": [text("a")]}),
        json!("a text"),
    ] {
        assert_kept(&json!({"contents": contents}));
    }
}

#[test]
fn what_is_no_request_is_refused() {
    for body in ["", "[]", "7", "{}", r#"{"messages":[]}"#] {
        let error = codec().decode_request(body.as_bytes()).expect_err(body);
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{body}");
    }
}
