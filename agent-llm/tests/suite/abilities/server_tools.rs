//! Provider-side tools: encoding on each wire, and errors that name the wires with support.

use std::sync::Arc;

use agent_core::{
    ErrorKind, ModelParams, ToolSpec,
    model::Effort,
    tool::{Computer, FileSearch, Location, RemoteMcp, ServerTool, WebFetch, WebSearch},
};
use agent_llm::{
    AnthropicCodec, AnthropicProfile, BedrockCodec, Codec, CohereCodec, CohereProfile, GeminiCodec, GeminiProfile,
    OllamaCodec, OpenAiChatCodec, OpenAiResponsesCodec, Profile, Providers,
};
use http::Request;
use serde_json::{Value, json};

use super::question;

fn all() -> Vec<ServerTool> {
    vec![
        WebSearch::new().into(),
        WebFetch::default().into(),
        ServerTool::CodeExecution,
        FileSearch::new(["store"]).max_results(3).into(),
        ServerTool::ImageGeneration,
        Computer::new(1280, 800).into(),
        RemoteMcp::new("wiki", "https://mcp.test").authorization("hush").into(),
    ]
}

fn encode(codec: &dyn Codec, tools: impl IntoIterator<Item = ServerTool>) -> agent_core::Result<Request<bytes::Bytes>> {
    let (_run, mut req) = question();
    req.tools = tools.into_iter().map(ToolSpec::of_server).collect();
    codec.encode(&req)
}

fn body(codec: &dyn Codec, tool: impl Into<ServerTool>) -> Value {
    serde_json::from_slice(encode(codec, [Into::<ServerTool>::into(tool)]).expect("it is said").body()).expect("JSON")
}

/// Returns the tools that a codec rejects.
fn refused(codec: &dyn Codec) -> Vec<&'static str> {
    let lacks = |tool: &ServerTool| {
        let error = encode(codec, [tool.clone()]).err()?;
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(error.message().contains("it is on"), "it says who has it: {error}");
        Some(tool.kind())
    };
    all().iter().filter_map(lacks).collect()
}

fn claude() -> AnthropicCodec {
    AnthropicCodec::new("claude-opus-4-6", AnthropicProfile::compatible("anthropic", "https://a.test"))
        .expect("a codec")
}

fn responses() -> OpenAiResponsesCodec {
    let mut profile = Profile::named("openai").expect("is known");
    profile.base_url = "https://o.test/v1".into();
    OpenAiResponsesCodec::new("gpt-5", profile).expect("a codec")
}

fn gemini() -> GeminiCodec {
    GeminiCodec::new("gemini-3-pro", GeminiProfile::compatible("gemini", "https://g.test/v1beta")).expect("a codec")
}

#[test]
fn a_wire_without_a_tool_says_which_wires_have_it() {
    let chat = OpenAiChatCodec::new("gpt-5", Profile::compatible("acme", "https://o.test/v1")).expect("a codec");
    let cohere =
        CohereCodec::new("command-a", CohereProfile::compatible("cohere", "https://c.test/v2")).expect("a codec");
    let every: Vec<_> = all().iter().map(ServerTool::kind).collect();
    assert_eq!(refused(&chat), every);
    assert_eq!(refused(&cohere), every);
    assert_eq!(refused(&responses()), ["web_fetch"]);
    assert_eq!(refused(&claude()), ["file_search", "image_generation"]);
    assert_eq!(refused(&gemini()), ["image_generation", "computer"]);
}

#[test]
fn a_setting_that_a_provider_has_no_word_for_is_named() {
    let refused = |codec: &dyn Codec, tool: ServerTool| {
        encode(codec, [tool]).expect_err("it cannot be said").message().to_owned()
    };
    assert!(refused(&gemini(), WebSearch::new().allow("a.test").into()).contains("allowed domains"));
    assert!(refused(&gemini(), WebSearch::new().block("a.test").into()).contains("blocked domains"));
    assert!(refused(&responses(), WebSearch::new().max_uses(2).into()).contains("number of uses"));
    assert!(refused(&claude(), WebSearch::new().allow("a.test").block("b.test").into()).contains("blocked domains"));
    for codec in [&claude() as &dyn Codec, &responses(), &gemini()] {
        assert!(refused(codec, RemoteMcp::new("w", "https://m.test").with_approval().into()).contains("approval"));
    }
}

#[test]
fn anthropic_is_told_in_its_own_words_and_asked_for_what_needs_a_beta() {
    let search = WebSearch::new().allow("docs.rs").max_uses(3).near(Location::city("Bern", "CH"));
    let told = body(&claude(), search);
    let place = json!({"type": "approximate", "city": "Bern", "country": "CH"});
    let wanted = json!([{"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["docs.rs"],
        "max_uses": 3, "user_location": place}]);
    assert_eq!(told["tools"], wanted);

    let server = RemoteMcp::new("wiki", "https://mcp.test").authorization("hush").allow("ask");
    let request = encode(&claude(), [ServerTool::from(server), Computer::new(1280, 800).into()]).expect("it is said");
    let told: Value = serde_json::from_slice(request.body()).expect("JSON");
    let server = json!([{"type": "url", "name": "wiki", "url": "https://mcp.test", "authorization_token": "hush"}]);
    assert_eq!(told["mcp_servers"], server);
    let toolset = json!({"type": "mcp_toolset", "mcp_server_name": "wiki", "default_config": {"enabled": false},
        "configs": {"ask": {"enabled": true}}});
    let computer =
        json!({"type": "computer_20251124", "name": "computer", "display_width_px": 1280, "display_height_px": 800});
    assert_eq!(told["tools"], json!([toolset, computer]));
    assert_eq!(request.headers()["anthropic-beta"], "mcp-client-2025-11-20,computer-use-2025-11-24");
}

#[test]
fn openai_is_told_in_its_own_words_and_asked_what_came_of_it() {
    let told = body(&responses(), WebSearch::new().allow("docs.rs"));
    assert_eq!(told["tools"], json!([{"type": "web_search", "filters": {"allowed_domains": ["docs.rs"]}}]));
    assert_eq!(told["include"], json!(["reasoning.encrypted_content", "web_search_call.action.sources"]));
    let told = body(&responses(), FileSearch::new(["vs_1"]).max_results(5));
    assert_eq!(told["tools"], json!([{"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 5}]));
    let server = RemoteMcp::new("wiki", "https://mcp.test").header("x-key", "hush").allow("ask");
    let wanted = json!([{"type": "mcp", "server_label": "wiki", "server_url": "https://mcp.test",
        "require_approval": "never", "headers": {"x-key": "hush"}, "allowed_tools": ["ask"]}]);
    assert_eq!(body(&responses(), server)["tools"], wanted);
    let told = body(&responses(), ServerTool::CodeExecution);
    assert_eq!(told["tools"], json!([{"type": "code_interpreter", "container": {"type": "auto"}}]));
}

#[test]
fn what_was_written_for_one_model_is_not_sent_to_another_that_is_told_otherwise() {
    let (_run, mut req) = question();
    req.tools = [ToolSpec::of_server(Computer::new(800, 600))].into_iter().collect();
    for (model, kind) in [("gpt-5", "computer"), ("computer-use-preview", "computer_use_preview")] {
        let codec = OpenAiResponsesCodec::new(model, Profile::openai()).expect("a codec");
        let sent: Value = serde_json::from_slice(codec.encode(&req).expect("it is said").body()).expect("JSON");
        assert_eq!(sent["tools"][0]["type"], kind);
    }
}

#[test]
fn where_chat_completions_search_the_web_it_is_a_setting_and_no_tool() {
    let codec = OpenAiChatCodec::new("gpt-5-search", Profile::openai()).expect("a codec");
    let told = body(&codec, WebSearch::new().near(Location::city("Bern", "CH")));
    let place = json!({"type": "approximate", "approximate": {"city": "Bern", "country": "CH"}});
    assert_eq!(told["web_search_options"], json!({"user_location": place}));
    assert_eq!(told.get("tools"), None);
}

#[test]
fn gemini_shows_what_its_tools_did_beside_functions() {
    let (_run, mut req) = question();
    let function = ToolSpec::new("look", "Looks.", json!({"type": "object", "properties": {}}));
    req.tools = [ToolSpec::of_server(WebSearch::new()), function].into_iter().collect();
    let told: Value = serde_json::from_slice(gemini().encode(&req).expect("it is said").body()).expect("JSON");
    assert_eq!(told["tools"][0], json!({"googleSearch": {}}));
    assert_eq!(told["tools"][1]["functionDeclarations"][0]["name"], "look");
    assert_eq!(told["toolConfig"], json!({"includeServerSideToolInvocations": true}));
    let server = RemoteMcp::new("wiki", "https://mcp.test").authorization("hush");
    let transport = json!({"url": "https://mcp.test", "headers": {"Authorization": "Bearer hush"}});
    let wanted = json!([{"mcpServers": [{"name": "wiki", "streamableHttpTransport": transport}]}]);
    assert_eq!(body(&gemini(), server)["tools"], wanted);
}

#[test]
fn an_own_tool_that_models_were_taught_is_a_function_where_they_were_not() {
    let spec = ToolSpec::new("computer", "Uses a computer.", json!({"type": "object", "properties": {}}));
    let spec = spec.with_server(Computer::new(800, 600));
    let tools = |codec: &dyn Codec| -> Value {
        let (_run, mut req) = question();
        req.tools = [spec.clone()].into_iter().collect();
        serde_json::from_slice::<Value>(codec.encode(&req).expect("it is said").body()).expect("JSON")["tools"].take()
    };
    let chat = OpenAiChatCodec::new("gpt-5", Profile::compatible("acme", "https://o.test/v1")).expect("a codec");
    assert_eq!(tools(&chat)[0]["function"]["name"], "computer");
    assert_eq!(tools(&gemini())[0]["functionDeclarations"][0]["name"], "computer");
    assert_eq!(tools(&responses()), json!([{"type": "computer"}]));
    assert_eq!(tools(&claude())[0]["display_width_px"], 800);
}

#[test]
fn a_server_of_ones_own_has_no_tools_and_knows_no_effort_above_high() {
    let profile =
        Providers::builtin().find("ollama").expect("is known").ollama.clone().expect("it speaks its own wire");
    let ollama = OllamaCodec::new("qwen3:8b", profile).expect("a codec");
    assert_eq!(refused(&ollama).len(), all().len(), "it has none of them");
    let (_run, mut req) = question();
    for (effort, think) in [(Effort::High, "high"), (Effort::XHigh, "high"), (Effort::Max, "high")] {
        req.params = Arc::new(ModelParams::default().effort(effort));
        let sent: Value = serde_json::from_slice(ollama.encode(&req).expect("it is said").body()).expect("JSON");
        assert_eq!(sent["think"], think);
    }
    req.params = Arc::new(ModelParams::default().thinking_tokens(1_000));
    assert_eq!(ollama.encode(&req).expect_err("it is told no number").kind(), ErrorKind::InvalidRequest);
}

#[test]
fn on_bedrock_a_beta_is_asked_for_in_the_body_and_amazons_models_have_two_tools() {
    let bedrock = Providers::builtin().find("bedrock").expect("is known").clone().with("region", "eu-west-1");
    let claude = AnthropicCodec::new("anthropic.claude-opus-4-6-v1", bedrock.anthropic.expect("it serves Claude"));
    let request = encode(&claude.expect("a codec"), [Computer::new(1280, 800).into()]).expect("it is said");
    let sent: Value = serde_json::from_slice(request.body()).expect("JSON");
    assert!(sent["anthropic_beta"][0].as_str().is_some_and(|beta| beta.starts_with("computer-use-")), "{sent}");
    assert!(!request.headers().contains_key("anthropic-beta"));

    let profile = bedrock.bedrock.expect("it speaks Converse");
    let nova = BedrockCodec::new("amazon.nova-2-lite-v1:0", profile).expect("a codec");
    let has = |kind: &str| !refused(&nova).contains(&kind);
    assert!(has("web_search") && has("code_execution") && !has("mcp") && !has("file_search"));
    let sent = body(&nova, ServerTool::CodeExecution);
    assert_eq!(sent["toolConfig"]["tools"][0], json!({"systemTool": {"name": "nova_code_interpreter"}}));
}
