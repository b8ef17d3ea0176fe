//! The table of providers.

use agent_core::{ErrorKind, Message, Model, ModelParams, ModelRequest, ToolChoice, ToolSpec, model::Effort};
use agent_llm::{KeyVariable, Provider, Providers, Wire, transport_fn};
use http::{Response, StatusCode};
use serde_json::{Value, json};

#[test]
fn the_table_is_the_same_after_it_was_written_and_read() {
    let all: Vec<_> = Providers::builtin().iter().cloned().collect();
    let again = Providers::builtin().with(&serde_json::to_value(&all).expect("JSON")).expect("reads");
    assert!(again.iter().eq(Providers::builtin().iter()));
}

#[test]
fn models_embedders_and_rerankers_are_named_of_the_providers_of_the_process() {
    let own = || agent_llm::model("of-this-process:x").build();
    assert!(own().is_err());
    let mut provider = Provider::new("of-this-process", Wire::Chat, "http://127.0.0.1:1/v1");
    provider.embed = Providers::builtin().find("openai").expect("known").embed.clone();
    Providers::of_process().register(provider).expect("sound").install();
    own().expect("it is known now");
    agent_llm::embedder("of-this-process:x").build().expect("its embedders are, too");
    assert!(Providers::builtin().get("of-this-process").is_none());
}

#[test]
fn what_comes_later_is_in_the_place_of_what_was_there() {
    let own = Provider::new("ollama", Wire::Chat, "http://gpu7:11434/v1");
    let table = Providers::builtin().register(own.clone()).expect("sound");
    assert_eq!(table.iter().count(), Providers::builtin().iter().count());
    assert_eq!(table.get("ollama").map(|known| known.wires.clone()), Some(own.wires));
}

#[test]
fn a_provider_that_is_like_another_says_only_what_differs() {
    let gateway = json!([{
        "like": "groq", "name": "gateway", "keys": ["GATEWAY_KEY"],
        "openai": {"base_url": "http://gateway.test/v1", "cache_control": true},
    }]);
    let table = Providers::builtin().with(&gateway).expect("sound");
    let gateway = table.find("gateway").expect("there");
    let openai = gateway.openai.as_ref().expect("it speaks so");
    assert_eq!((openai.verbatim, openai.cache_control, openai.provider.as_str()), (false, true, "gateway"));
    assert_eq!(gateway.keys, [KeyVariable::from("GATEWAY_KEY")]);
    assert!(gateway.recorded.is_empty(), "untested");
}

#[test]
fn tokens_of_an_identity_are_not_shown_to_whoever_is_like_its_provider() {
    let gateway = json!([{"like": "azure", "name": "gateway", "keys": ["GATEWAY_KEY"],
        "openai": {"base_url": "https://llm.acme.example/v1"}}]);
    let providers = Providers::builtin().with(&gateway).expect("a table");
    assert!(providers.find("azure").expect("is known").identity.is_some());
    assert_eq!(providers.find("gateway").expect("is known").identity, None);
}

#[test]
fn keys_of_ones_own_are_not_shown_where_the_other_has_vectors_made() {
    let like = |more: serde_json::Value| {
        let mut gateway = json!({"like": "bedrock", "name": "gateway"});
        gateway.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        let table = Providers::builtin().with(&json!([gateway])).expect("a table");
        let gateway = table.find("gateway").expect("is known");
        let embeds = gateway.embed.as_ref().map(|profile| profile.base_url.clone());
        (embeds, gateway.rerank.is_some())
    };
    assert!(matches!(like(json!({})), (Some(_), true)));
    assert_eq!(like(json!({"keys": ["GATEWAY_KEY"]})), (None, false));
    assert_eq!(like(json!({"bedrock": {"base_url": "https://g.test"}})), (None, false));
    let own = json!({"keys": ["GATEWAY_KEY"], "embed": {"base_url": "https://g.test"}});
    assert_eq!(like(own), (Some("https://g.test".into()), false));
}

#[test]
fn a_provider_that_does_not_hang_together_is_refused_with_all_that_is_wrong() {
    let refused = |file: serde_json::Value| {
        let error = Providers::builtin().with(&file).expect_err("it is wrong");
        error.message().to_owned()
    };
    let all = refused(json!([{"name": "a b", "wires": ["chat", "messages"], "recorded": ["generate"],
        "openai": {"base_url": "http://{where}/v1"}}]));
    for word in ["its name", "keyless", "'generate' is recorded", "the place 'where'", "no profile 'anthropic'"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert!(refused(json!([{"name": "x", "keyless": true}])).contains("speaks no wire"));
    assert!(refused(json!([{"name": "x", "wires": ["smoke"]}])).contains("unknown variant"));
    assert!(refused(json!([{"name": "x", "base_ulr": 1}])).contains("base_ulr"), "a slip of the pen is an error");
    assert!(refused(json!([{"like": "nobody"}])).contains("no provider 'nobody'"));
    assert!(refused(json!({})).contains("no list"));
}

#[test]
fn a_misspelt_wire_is_not_taken_for_a_part_of_the_models_name() {
    let built =
        |name: &str| agent_llm::model(name).api_key("k").build().map(|_| ()).map_err(|e| e.message().to_owned());
    let refused = built("openai:gpt-5@chatt").expect_err("there is none");
    assert!(refused.contains("there is no wire 'chatt': did you mean 'chat'?"), "{refused}");
    for name in
        ["openai:gpt-5@chat", "openai:ft-gpt@20250929", "anthropic:claude-sonnet-4@20250929", "openai:@cf/meta/llama"]
    {
        assert_eq!(built(name), Ok(()), "{name}");
    }
    let refused = built("opnai:gpt-5").expect_err("there is none");
    assert!(refused.ends_with("there is no provider 'opnai': did you mean openai?"), "{refused}");
}

#[test]
fn a_file_is_read_and_its_name_said_where_it_is_wrong() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("providers.json");
    std::fs::write(&path, r#"[{"like": "vllm", "name": "gpu", "openai": {"base_url": "http://gpu7:8000/v1"}}]"#)
        .expect("writes");
    let model = Providers::builtin().with_file(&path).expect("reads").model("gpu:llama").build().expect("builds");
    assert_eq!(agent_core::Model::info(&model).provider, "gpu");
    std::fs::write(&path, "[{").expect("writes");
    let error = Providers::builtin().with_file(&path).expect_err("no JSON");
    assert!(error.message().contains("providers.json"), "{error}");
}

fn asked(params: ModelParams) -> ModelRequest {
    let history = agent_core::History::from_messages([Message::user("hi")]).expect("paired");
    let mut req = ModelRequest::new(agent_core::testing::detached_run(history).cx().clone());
    req.tools = ["look", "find"].map(|name| ToolSpec::new(name, "", json!({"type": "object"}))).into_iter().collect();
    req.params = params.into();
    req
}

#[tokio::test]
async fn ollama_is_told_of_memory_window_and_thinking_and_that_nothing_is_to_be_left_out() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Value::Null));
    let body = seen.clone();
    let server = transport_fn(move |request| {
        *body.lock().expect("lock") = serde_json::from_slice(request.body()).expect("JSON");
        let answer = json!({"message": {"role": "assistant", "content": "hello"}, "done": true}).to_string();
        async move { Ok(Response::new(answer.into())) }
    });
    let builder = agent_llm::model("ollama:qwen3:8b").transport(server).option("keep_alive", "30m");
    let model = builder.option("options", json!({"num_ctx": 8_192, "top_k": 3})).build().expect("a model");
    assert_eq!(model.info().context_window, Some(8_192));
    let params =
        ModelParams::default().effort(Effort::Minimal).max_tokens(7).tool_choice(ToolChoice::Tool("find".into()));
    assert_eq!(model.call(asked(params)).await.expect("an answer").message.text(), "hello");
    let sent = seen.lock().expect("lock").take();
    let settings = ["model", "think", "keep_alive", "truncate", "stream"].map(|name| sent[name].clone());
    assert_eq!(settings, [json!("qwen3:8b"), json!("low"), json!("30m"), json!(false), json!(false)]);
    assert_eq!(sent["options"], json!({"num_ctx": 8_192, "top_k": 3, "num_predict": 7}));
    assert_eq!(sent["tools"].as_array().map(Vec::len), Some(1), "the other is not to be called: {sent}");
    let none = ModelParams::default().effort(Effort::None).tool_choice(ToolChoice::None);
    model.call(asked(none)).await.expect("an answer");
    let sent = seen.lock().expect("lock").take();
    assert_eq!((&sent["think"], sent.get("tools")), (&json!(false), None));
}

#[tokio::test]
async fn a_model_that_an_ollama_server_does_not_have_is_an_error_that_says_how_to_get_it() {
    let refused = |status: u16, body: &'static str| async move {
        let server = transport_fn(move |_| async move {
            let mut response = Response::new(body.into());
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            Ok(response)
        });
        let model = agent_llm::model("ollama:qwen3:8b").transport(server).build().expect("a model");
        model.call(asked(ModelParams::default())).await.expect_err("refused")
    };
    let error = refused(404, r#"{"error":"model 'qwen3:8b' not found"}"#).await;
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::InvalidRequest, "model 'qwen3:8b' not found: get it with `ollama pull qwen3:8b`",)
    );
    assert_eq!(refused(404, "404 page not found").await.message(), "404 page not found");
}

/// Returns the row of a provider in the guide.
fn row(provider: &Provider) -> String {
    let code = |names: Vec<String>| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let wires = code(provider.wires.iter().map(Wire::to_string).collect());
    let mut set: Vec<_> = provider.places.values().flat_map(|place| place.variables.iter().cloned()).collect();
    set.extend(provider.keys.iter().map(|key| key.variable.clone()));
    let needs = code(set) + if provider.keyless { " (optional)" } else { "" };
    let recorded = code(provider.recorded.iter().map(Wire::to_string).collect());
    let tried = if recorded.is_empty() { "untested".to_owned() } else { format!("recorded: {recorded}") };
    let docs = provider.docs.as_deref().expect("a provider says where it is documented");
    format!("| [`{}`]({docs}) | {needs} | {wires} | {tried} |", provider.name)
}

#[test]
fn the_guide_has_a_row_for_each_provider() {
    let guide = include_str!("../../../docs/guide/providers.md");
    let rows: Vec<_> = Providers::builtin().iter().filter(|provider| !provider.wires.is_empty()).map(row).collect();
    let table: Vec<_> = guide.lines().filter(|line| line.starts_with("| [`")).collect();
    assert!(table == rows, "the table of docs/guide/providers.md is to be:\n{}", rows.join("\n"));
}
