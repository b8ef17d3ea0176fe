//! Claude on cloud platforms.

use agent_core::{History, Message, ModelRequest, testing::detached_run};
use agent_llm::{AnthropicCodec, Codec, Providers};
use serde_json::{Value, json};

fn asked(provider: &str, model: &str, stream: bool) -> (String, Option<String>, Value) {
    let provider = Providers::builtin().find(provider).expect("is known").clone();
    let provider = provider.with("region", "eu-west-1").with("location", "global").with("project", "p");
    let mut profile = provider.anthropic.expect("it serves Claude");
    profile.betas = vec!["one".into(), "two".into()];
    let codec = AnthropicCodec::new(model, profile).expect("a codec").with_max_tokens(9);
    let history = History::from_messages([Message::user("hi")]).expect("paired");
    let mut request = ModelRequest::new(detached_run(history).cx().clone());
    request.stream = stream;
    let request = codec.encode(&request).expect("a request");
    assert!(!request.headers().contains_key("anthropic-version"), "the body says it");
    let betas = request.headers().get("anthropic-beta").map(|value| value.to_str().expect("a text").to_owned());
    (request.uri().to_string(), betas, serde_json::from_slice(request.body()).expect("JSON"))
}

#[test]
fn bedrock_is_asked_at_the_models_address_with_version_and_betas_in_the_body() {
    let wanted = json!({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["one", "two"], "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]});
    let host = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-opus-4-6-v1%3A0";
    for (stream, path) in [(false, "invoke"), (true, "invoke-with-response-stream")] {
        let (uri, betas, body) = asked("bedrock", "anthropic.claude-opus-4-6-v1:0", stream);
        assert_eq!((uri, betas), (format!("{host}/{path}"), None));
        assert_eq!(body, wanted);
    }
}

#[test]
fn vertex_is_asked_at_the_models_address_with_the_version_in_the_body() {
    let host = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models";
    let message = json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]);
    let (uri, betas, body) = asked("vertex", "claude-opus-4@20250514", false);
    assert_eq!(uri, format!("{host}/claude-opus-4@20250514:rawPredict"));
    assert_eq!(betas.as_deref(), Some("one,two"));
    assert_eq!(body, json!({"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": message}));
    let (uri, _, body) = asked("vertex", "claude-opus-4@20250514", true);
    assert_eq!(uri, format!("{host}/claude-opus-4@20250514:streamRawPredict"));
    assert_eq!(body["stream"], true);
}
