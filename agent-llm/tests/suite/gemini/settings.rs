//! Encoding of parameters and tools.

use std::sync::Arc;

use agent_core::{
    ErrorKind, Message, ModelParams, ModelRequest, OutputFormat, ToolChoice, ToolSpec, ToolSpecs,
    message::{Origin, Raw},
    model::Effort,
};
use agent_llm::{Codec, GeminiCodec, GeminiProfile, GeminiSchemas, Providers};
use serde_json::{Value, json};

use super::{
    common::{encoded, request},
    support::{codec, newer, own},
};

fn with(params: ModelParams, tools: impl IntoIterator<Item = ToolSpec>) -> ModelRequest {
    let mut req = request([Message::user("u")]);
    (req.params, req.tools) = (Arc::new(params), tools.into_iter().collect::<ToolSpecs>());
    req
}

fn config(codec: &impl Codec, params: ModelParams) -> Value {
    encoded(codec, &with(params, []))["generationConfig"].clone()
}

fn named(model: &str) -> GeminiCodec {
    GeminiCodec::new(model, GeminiProfile::ai_studio()).expect("a codec")
}

fn open_api() -> GeminiCodec {
    let mut profile = GeminiProfile::ai_studio();
    profile.schemas = GeminiSchemas::OpenApi;
    GeminiCodec::new("gemini-2.5-flash", profile).expect("a codec")
}

#[test]
fn parameters_have_the_providers_names() {
    let mut params = ModelParams::default().temperature(0.5).max_tokens(7);
    (params.top_p, params.seed, params.stop) = (Some(0.9), Some(3), vec!["x".into()]);
    let expected = json!({"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 7, "stopSequences": ["x"], "seed": 3});
    assert_eq!(config(&codec(), params), expected);
    let nothing = encoded(&codec(), &with(ModelParams::default(), []));
    assert_eq!(nothing, json!({"contents": [{"role": "user", "parts": [{"text": "u"}]}]}));
}

#[test]
fn an_effort_is_a_budget_or_a_level() {
    let thinking =
        |model, effort| config(&named(model), ModelParams::default().effort(effort))["thinkingConfig"].clone();
    let (budget, level) = ("gemini-2.5-flash", "gemini-3-flash-preview");
    assert_eq!(thinking(budget, Effort::None), json!({"thinkingBudget": 0}));
    assert_eq!(thinking(budget, Effort::Medium), json!({"includeThoughts": true, "thinkingBudget": 8192}));
    assert_eq!(thinking("gemini-2.5-pro", Effort::None), json!({"thinkingBudget": 128}));
    assert_eq!(thinking(level, Effort::Minimal), json!({"includeThoughts": true, "thinkingLevel": "minimal"}));
    assert_eq!(thinking(level, Effort::High), json!({"includeThoughts": true, "thinkingLevel": "high"}));
    assert_eq!(thinking("gemini-3-pro-preview", Effort::None), json!({"thinkingLevel": "low"}));
    let mut profile = GeminiProfile::ai_studio();
    profile.generation = Some(agent_llm::GeminiGeneration::Gemini2);
    profile.include_thoughts = false;
    let told = GeminiCodec::new("some-alias", profile).expect("a codec");
    let told = config(&told, ModelParams::default().effort(Effort::Low));
    assert_eq!(told["thinkingConfig"], json!({"thinkingBudget": 1024}), "the profile decides");
}

#[test]
fn an_answer_has_the_form_that_was_asked_for() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": ["integer", "null"]}}, "additionalProperties": false});
    let params = || ModelParams::default().output(OutputFormat::new("answer", schema.clone()));
    let expected = json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
    assert_eq!(config(&codec(), params()), expected);
    let projected = json!({"type": "object", "properties": {"n": {"type": "integer", "nullable": true}}});
    let expected = json!({"responseMimeType": "application/json", "responseSchema": projected});
    assert_eq!(config(&open_api(), params()), expected);
    let any = config(&codec(), ModelParams::default().output(OutputFormat::json()));
    assert_eq!(any, json!({"responseMimeType": "application/json"}));
}

#[test]
fn functions_are_declared_together_and_tools_of_the_provider_beside_them() {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "string", "format": "uuid"}}});
    let search = own(&json!({"googleSearch": {}}));
    let elsewhere = Raw::parse(Origin::new("other", "p", "m"), r#"{"type":"web_search"}"#).expect("valid");
    let tools = || {
        [
            ToolSpec::new("f", "does", parameters.clone()),
            ToolSpec::server_side("googleSearch", search.clone()),
            ToolSpec::server_side("web_search", elsewhere.clone()),
            ToolSpec::new("g", "", json!({"type": "object", "properties": {}})),
        ]
    };
    let body = encoded(&codec(), &with(ModelParams::default(), tools()));
    let f = json!({"name": "f", "description": "does", "parametersJsonSchema": parameters});
    let g = json!({"name": "g", "parametersJsonSchema": {"type": "object", "properties": {}}});
    assert_eq!(body["tools"], json!([{"functionDeclarations": [f, g]}, {"googleSearch": {}}]));

    let body = encoded(&open_api(), &with(ModelParams::default(), tools()));
    let x = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    let declarations = json!([{"name": "f", "description": "does", "parameters": x}, {"name": "g"}]);
    assert_eq!(body["tools"], json!([{"functionDeclarations": declarations}]), "another provider runs the search");

    let foreign = encoded(&codec(), &with(ModelParams::default(), [ToolSpec::server_side("web_search", elsewhere)]));
    assert_eq!(foreign.get("tools"), None);
}

#[test]
fn which_function_must_be_called_is_said_where_there_is_one() {
    let choose = |choice: ToolChoice, tools: Vec<ToolSpec>| {
        let body = encoded(&codec(), &with(ModelParams::default().tool_choice(choice), tools));
        body.get("toolConfig").map(|config| config["functionCallingConfig"].clone())
    };
    let f = || vec![ToolSpec::new("f", "does", json!({"type": "object"}))];
    assert_eq!(choose(ToolChoice::Auto, f()), Some(json!({"mode": "AUTO"})));
    assert_eq!(choose(ToolChoice::None, f()), Some(json!({"mode": "NONE"})));
    assert_eq!(choose(ToolChoice::Required, f()), Some(json!({"mode": "ANY"})));
    let only = choose(ToolChoice::Tool("f".into()), f());
    assert_eq!(only, Some(json!({"mode": "ANY", "allowedFunctionNames": ["f"]})));
    assert_eq!(choose(ToolChoice::Required, vec![]), None);
    let search = vec![ToolSpec::server_side("googleSearch", own(&json!({"googleSearch": {}})))];
    assert_eq!(choose(ToolChoice::Required, search), None);
}

#[test]
fn extra_fields_are_merged_last_and_deeply_in_either_spelling() {
    let safety = json!([{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]);
    let params = ModelParams::default()
        .temperature(0.5)
        .max_tokens(7)
        .effort(Effort::Low)
        .extra("generation_config", json!({"max_output_tokens": 9, "thinkingConfig": {"thinkingBudget": 1}}))
        .extra("safetySettings", safety.clone())
        .extra("tools", json!([{"urlContext": {}}]));
    let body = encoded(&codec(), &with(params, [ToolSpec::new("f", "", json!({}))]));
    let thinking = json!({"includeThoughts": true, "thinkingBudget": 1});
    let config = json!({"temperature": 0.5, "max_output_tokens": 9, "thinkingConfig": thinking});
    assert_eq!((&body["generation_config"], body.get("generationConfig")), (&config, None));
    assert_eq!(body["safetySettings"], safety);
    assert_eq!(body["tools"], json!([{"urlContext": {}}]));
    let own_contents = ModelParams::default().extra("contents", json!([])).extra("system_instruction", Value::Null);
    let mut req = with(own_contents, []);
    req.system = Some(agent_core::SystemMessage::new(vec!["s".into()]));
    assert_eq!(encoded(&codec(), &req), json!({"contents": [], "system_instruction": null}));
}

#[test]
fn an_address_is_that_of_the_server() {
    let uri = |codec: GeminiCodec| codec.encode(&with(ModelParams::default(), [])).expect("encodes").uri().to_string();
    let vertex = Providers::builtin().find("vertex").expect("known").clone();
    let vertex = vertex.with("project", "p").with("location", "europe-west4");
    let vertex = GeminiCodec::new("gemini-3-pro", vertex.gemini.expect("its own wire")).expect("a codec");
    let expected = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/google\
                    /models/gemini-3-pro:generateContent";
    assert_eq!(uri(vertex), expected);
    let tuned = "https://generativelanguage.googleapis.com/v1beta/tunedModels/mine:generateContent";
    assert_eq!(uri(named("tunedModels/mine")), tuned);
    let keyed = GeminiProfile::compatible("x", "https://x.test/v1?key=1");
    let keyed = GeminiCodec::new("m", keyed).expect("a codec");
    assert_eq!(uri(keyed), "https://x.test/v1/models/m:generateContent?key=1");
    for url in ["", "api.example.com/v1", "ftp://x/v1", "http://"] {
        let error = GeminiCodec::new("m", GeminiProfile::compatible("x", url)).expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Config, "{url}");
    }
    assert_eq!(newer().profile().provider, "acme");
}
