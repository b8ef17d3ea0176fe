//! The model catalogue and its effects.

use std::collections::HashSet;

use agent_core::{
    ErrorKind, Model, ModelRequest, Usage,
    model::{Modality, PriceTable},
};
use agent_llm::{
    Catalogue, ModelBuilder,
    models::{ModelEntry, Prices},
};
use serde_json::{Value, json};

use crate::common::{Answer, DONE, Provider, ask, ask_to_stream, codec, completion, delta, finish, hello, say};

fn models() -> Catalogue {
    Catalogue::builtin()
}

fn found(name: &str) -> &'static str {
    let models = models();
    let Some(entry) = models.find(name) else { return "nothing" };
    let name = models.iter().find(|(_, known)| std::ptr::eq(*known, entry)).expect("it is one of them").0;
    Box::leak(name.to_owned().into_boxed_str())
}

// --- the file ---

#[test]
fn the_file_says_when_and_where_it_was_looked_up() {
    let file: Value = serde_json::from_str(include_str!("../../src/models/models.json")).expect("JSON");
    assert!(models().checked().is_some_and(|day| day.len() == 10));
    for (name, entry) in models().iter() {
        let source = file["sources"][&entry.provider].as_str();
        assert!(source.is_some_and(|url| url.starts_with("https://")), "{name}: {}", entry.provider);
    }
}

#[test]
fn no_name_stands_for_two_models() {
    let (models, mut names) = (models(), HashSet::new());
    for (name, entry) in models.iter() {
        for name in std::iter::once(name).chain(entry.aliases.iter().map(String::as_str)) {
            assert!(names.insert(name.to_owned()), "{name}");
            assert_eq!(models.find(name), Some(entry), "{name}");
        }
    }
}

#[test]
fn what_it_says_is_plausible() {
    let plausible = |prices: &Prices| {
        let (input, output) = (prices.input.micros(), prices.output.micros());
        let at_most = |price: Option<agent_llm::models::Price>, most| price.is_none_or(|price| price.micros() <= most);
        (output >= input || output == 0)
            && at_most(prices.cached, input)
            && at_most(prices.cache_write, 2 * input)
            && at_most(prices.cache_write_long, 5 * input / 2)
            && prices.cache_write_long.is_none_or(|long| prices.cache_write.is_some_and(|short| short < long))
            && output <= 300_000_000
    };
    let models = models();
    assert!(models.iter().count() > 100);
    for (name, entry) in models.iter() {
        let ModelEntry { price, max_context, max_output, tools, dimensions, .. } = entry;
        assert!(max_context.is_none_or(|most| (512..=4_000_000).contains(&most)), "{name}");
        let is_of_vectors = price.as_ref().is_some_and(|price| price.output.micros() == 0 && price.input.micros() > 0);
        assert_eq!(is_of_vectors, dimensions.is_some() && price.is_some(), "{name}");
        assert!(!entry.input.is_empty() && entry.checked.as_deref().is_none_or(|day| day < "2026-11-22"), "{name}");
        assert!(max_output.is_none_or(|most| max_context.is_some_and(|all| most <= all)), "{name}");
        assert!(tools.is_some(), "{name}");
        let Some(price) = price else { continue };
        assert!(plausible(price), "{name}: {price:?}");
        if let Some(long) = &price.long {
            assert!(plausible(&long.price) && long.price.input > price.input, "{name}: {long:?}");
            assert!(max_context.is_none_or(|most| long.over <= most), "{name}");
        }
    }
}

// --- names ---

#[test]
fn aliases_and_dated_versions_are_the_models_that_they_mean() {
    for (name, model) in [
        ("gpt-5", "gpt-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("openai/gpt-5-mini", "gpt-5-mini"),
        ("gpt-5.6", "gpt-5.6-sol"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("gpt-3.5-turbo-0125", "gpt-3.5-turbo"),
        ("gpt-3.5-turbo-1106", "gpt-3.5-turbo-1106"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("anthropic/claude-opus-5-5", "claude-opus-5-5"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("groq/openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("deepseek-v4-flash", "deepseek-flash"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-sonnet-4-5"),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "global.anthropic.claude-sonnet-4-5"),
        ("bedrock/eu.amazon.nova-lite-v1:0", "amazon.nova-lite"),
        ("us.anthropic.claude-opus-4-6-v1", "anthropic.claude-opus-4-6"),
        ("claude-opus-4-8@default", "claude-opus-4-8"),
        ("command-a-03-2025", "command-a-03-2025"),
        ("text-embedding-3-small", "text-embedding-3-small"),
    ] {
        assert_eq!(found(name), model, "{name}");
    }
}

#[test]
fn what_is_not_known_is_not_guessed() {
    for name in [
        "gpt-5.7",
        "gpt-5-turbo",
        "gpt-5-mini-high",
        "gpt-4o-audio-preview",
        "ft:gpt-4o-2024-08-06:acme",
        "my-gpt-5",
        "acme/gpt-5",
        "anthropic/gpt-5",
        "claude-opus-4-9",
        "claude-sonnet-4-9-20270101",
        "claude-opus-6",
        "us.anthropic.claude-opus-4-9-v1:0",
        "us.gpt-5",
        "gpt-5-v1",
        "gemini-2.5-pro-tts",
        "mistral-large-latest",
        "grok-4-heavy",
        "GPT-5",
        "",
        "gpt",
        "/",
        "openai/",
    ] {
        assert_eq!(found(name), "nothing", "{name}");
        assert_eq!(models().cost(name, &Usage::new(1, 1)), None, "{name}");
    }
}

#[test]
fn prices_hold_for_the_provider_that_they_are_of() {
    let models = models();
    assert!(models.find_at("groq", "openai/gpt-oss-120b").is_some());
    assert!(models.find_at("openrouter", "openai/gpt-oss-120b").is_none());
    assert!(models.find_at("huggingface", "gpt-5").is_none() && models.find_at("openai", "gpt-5").is_some());
}

#[test]
fn clouds_that_sell_models_of_others_have_their_prices_and_models_by_another_name_their_own() {
    let models = models();
    let cost = |provider: &str, name: &str| models.find_at(provider, name)?.price.as_ref()?.cost(&Usage::new(1_000, 0));
    assert_eq!(cost("azure", "gpt-5-2025-08-07"), Some(1_250));
    assert_eq!(cost("gemini", "gemini-2.5-pro"), Some(1_250));
    assert_eq!(cost("vertex", "gemini-2.5-pro"), Some(1_250));
    assert_eq!(cost("vertex", "claude-opus-5@20260901"), Some(5_000));
    assert_eq!(cost("bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some(3_000));
    assert_eq!(cost("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"), None, "it depends on the region");
}

#[test]
fn calls_of_a_batch_cost_half_where_there_are_batches() {
    let models = models();
    let mut usage = Usage::new(1_000, 100);
    let cost = |provider: &str, name: &str, usage: &Usage| models.batch_prices(provider, name)?.cost(usage);
    assert_eq!(cost("anthropic", "claude-opus-5", &usage), Some((5_000 + 2_500) / 2));
    assert_eq!(cost("openai", "text-embedding-3-small", &Usage::new(1_000_000, 0)), Some(10_000));
    assert_eq!(cost("deepseek", "deepseek-v4-pro", &usage), None, "it has no batches");
    assert_eq!(cost("openai", "claude-opus-5", &usage), None);
    usage.cached = 10;
    assert!(cost("openai", "gpt-5", &usage).is_some());
    assert_eq!(cost("gemini", "gemini-2.5-pro", &usage), None, "nobody says what a cache served costs there");
}

#[test]
fn an_entry_says_what_a_model_takes_and_how_long_its_vectors_are() {
    let models = models();
    let takes = |name: &str, what| models.find(name).expect("known").takes(what);
    assert_eq!(takes("gpt-5", Modality::Image), Some(true));
    assert_eq!(takes("amazon.nova-lite-v1:0", Modality::Video), Some(true));
    assert_eq!(takes("o3-mini", Modality::Image), Some(false));
    let vectors = models.find_at("azure", "text-embedding-3-large").expect("known");
    assert_eq!((vectors.dimensions, vectors.max_context, vectors.tools), (Some(3_072), Some(8_192), Some(false)));
    let old = models.find("amazon.nova-lite").and_then(|entry| entry.checked.as_deref());
    assert!(old.is_some_and(|day| day < models.checked().expect("a day")), "it says how old it is");
}

// --- additions by an application ---

#[test]
fn an_application_adds_models_and_corrects_fields() {
    let ours = models()
        .with(&json!({"checked": "2030-01-01", "models": {
            "gpt-5": {"max_context": 1_000, "price": {"input": 2}},
            "gpt-5-nano": null,
            "gpt-4.1": {"price": null},
            "azure/gpt-5": {"provider": "azure", "price": {"input": 1.5, "output": 12}},
            "our-*": {"provider": "ours", "max_context": 8_192},
            "our-large*": {"provider": "ours", "max_context": 65_536},
        }}))
        .expect("a catalogue");
    let gpt_5 = ours.find("gpt-5-2025-08-07").expect("known");
    assert_eq!((gpt_5.max_context, gpt_5.max_output), (Some(1_000), Some(128_000)));
    assert_eq!(ours.cost("gpt-5", &Usage::new(1_000, 1_000)), Some(2_000 + 10_000), "the output's price stays");
    assert!(ours.find("gpt-5-nano").is_none() && ours.find("gpt-4.1").expect("known").price.is_none());
    assert_eq!(
        ours.find_at("azure", "gpt-5").and_then(|entry| entry.price.as_ref()?.cost(&Usage::new(0, 10))),
        Some(120)
    );
    assert_eq!(ours.find("our-small-3").and_then(|entry| entry.max_context), Some(8_192));
    assert_eq!(ours.find("our-large-3").and_then(|entry| entry.max_context), Some(65_536), "the longest fits best");
    assert_eq!(ours.checked(), Some("2030-01-01"));
    assert!(models().find("our-small").is_none(), "the other catalogue is as it was");
}

#[test]
fn a_catalogue_that_is_wrong_says_where() {
    for (wrong, said) in [
        (json!({"models": {"m": {"max_contxt": 5}}}), "'m'"),
        (json!({"models": {"m": {"price": {"input": "cheap", "output": 1}}}}), "'m'"),
        (json!({"models": {"m": {"price": {"input": 1, "outptu": 1}}}}), "'m'"),
        (json!({"models": {"m": {"price": {"input": 1, "output": 1, "long": {"over": 5, "prices": {}}}}}}), "'m'"),
        (json!({"modles": {}}), "modles"),
        (json!([]), "catalogue"),
    ] {
        let error = models().with(&wrong).expect_err("wrong");
        assert!(error.kind() == ErrorKind::Config && error.message().contains(said), "{error}");
    }
}

#[test]
fn a_catalogue_is_read_from_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ours.json");
    std::fs::write(&path, r#"{"models": {"ours": {"provider": "us", "max_context": 7}}}"#).expect("written");
    let ours = Catalogue::empty().with_file(&path).expect("a catalogue");
    assert_eq!(ours.iter().map(|(name, entry)| (name, entry.max_context)).collect::<Vec<_>>(), [("ours", Some(7))]);
    std::fs::write(&path, r#"{"models": {"ours": {"nothing": 1}}}"#).expect("written");
    for (path, said) in [(path.clone(), "'ours'"), (dir.path().join("none.json"), "none.json")] {
        let error = Catalogue::empty().with_file(path).expect_err("wrong");
        assert!(error.message().contains(said) && error.message().contains(".json"), "{error}");
    }
}

// --- effects ---

fn built(name: &str) -> ModelBuilder {
    at("openai", name)
}

fn at(provider: &str, name: &str) -> ModelBuilder {
    agent_llm::model(format!("{provider}:{name}")).api_key("a-key-of-mine")
}

#[test]
fn a_model_has_its_context_window_from_the_catalogue_if_none_was_set() {
    let window = |builder: ModelBuilder| {
        let info = builder.build().expect("a model").info();
        (info.context_window, info.max_output)
    };
    assert_eq!(window(built("gpt-5-mini-2025-08-07")), (Some(400_000), Some(128_000)));
    assert_eq!(window(built("gpt-5-mini").context_window(9_000)), (Some(9_000), Some(128_000)));
    assert_eq!(window(built("gpt-5-mini").base_url("http://gateway.test/v1")), (Some(400_000), Some(128_000)));
    assert_eq!(window(at("deepseek", "deepseek-v4-pro")).0, Some(1_000_000));
    assert_eq!(window(built("a-model-of-somebody")), (None, None));
    assert_eq!(window(built("gpt-5-mini").catalogue(Catalogue::empty())), (None, None));
    let ours = Catalogue::empty().with(&json!({"models": {"m": {"max_context": 5}}})).expect("a catalogue");
    assert_eq!(window(built("m").catalogue(ours.clone())).0, Some(5));
    let other_wire =
        ModelBuilder::new(codec()).catalogue(ours).transport(Provider::default()).build().expect("a model");
    assert_eq!(other_wire.info().context_window, Some(5), "every wire has it");
}

#[test]
fn a_model_says_that_it_is_held_to_a_schema_where_its_server_takes_one_beside_tools() {
    let chat = |name: &str| built(name).build().expect("a model").info().json_schema;
    assert!(chat("gpt-5") && chat("gpt-4o-2024-08-06") && !chat("gpt-3.5-turbo") && !chat("gpt-4o-2024-05-13"));
    let of = |model: ModelBuilder| model.build().expect("a model").info().json_schema;
    assert!(of(at("azure", "m").option("resource", "x")) && of(at("xai", "m")));
    assert!(!of(at("deepseek", "m")) && !of(at("vllm", "m")) && !of(at("groq", "m")));
    let responses = built("gpt-5@responses").build().expect("a model");
    let claude = |name: &str| at("anthropic", name).build().expect("a model").info().json_schema;
    let gemini = |name: &str| at("gemini", name).build().expect("a model").info().json_schema;
    assert!(responses.info().json_schema && claude("claude-opus-5") && gemini("gemini-3-pro-preview"));
    assert!(!claude("claude-3-haiku-20240307") && !gemini("gemini-2.5-flash"));
    let behind = agent_llm::model("anthropic:m").base_url("https://llm.test/anthropic").build().expect("a model");
    assert!(behind.info().json_schema, "another address keeps the dialect of the provider that was named");
    let ours = models().with(&json!({"models": {"our-model": {"provider": "ours", "json_schema": true}}}));
    let ours = built("our-model").base_url("http://ours/v1").catalogue(ours.expect("a catalogue"));
    assert!(ours.build().expect("a model").info().json_schema);
}

async fn usage(builder: ModelBuilder, answer: &str, req: ModelRequest) -> Usage {
    let provider = Provider::new([Answer::json(200, answer.to_owned())]);
    builder.transport(provider).build().expect("a model").call(req).await.expect("an answer").usage
}

#[tokio::test]
async fn a_call_knows_what_it_cost_by_the_model_that_answered() {
    let answer = |model: &str| hello().replace("m-1", model);
    let priced = |u: Usage| (u.cost, u.priced, u.calls, u.whole_cost());
    // 10 tokens in, 5 out.
    assert_eq!(priced(usage(built("gpt-5"), &answer("gpt-5-2025-08-07"), ask()).await), (63, 1, 1, Some(63)));
    assert_eq!(priced(usage(built("gpt-5"), &answer("gpt-5-pro"), ask()).await), (750, 1, 1, Some(750)));
    assert_eq!(priced(usage(built("gpt-5"), &answer("gpt-5-of-tomorrow"), ask()).await), (63, 1, 1, Some(63)));
    assert_eq!(priced(usage(built("m"), &answer("m-1"), ask()).await), (0, 0, 1, None));
    let elsewhere = built("gpt-5").base_url("http://gateway.test/v1");
    assert_eq!(priced(usage(elsewhere, &answer("gpt-5"), ask()).await), (0, 0, 1, None), "who knows what that costs");
    let silent = completion(r#"{"role":"assistant","content":"hello"}"#, "stop").replace("usage", "unused");
    assert_eq!(priced(usage(built("gpt-5"), &silent, ask()).await), (0, 0, 0, Some(0)));
}

#[tokio::test]
async fn a_streamed_call_costs_the_same() {
    let used = r#"{"choices":[],"model":"gpt-5","usage":{"prompt_tokens":10,"completion_tokens":5}}"#;
    let body = delta(r#"{"content":"hello"}"#) + &finish("stop") + &format!("data: {used}\n\n") + DONE;
    let provider = Provider::new([Answer::stream([say(body)])]);
    let model = built("gpt-5").transport(provider).build().expect("a model");
    assert_eq!(model.call(ask_to_stream()).await.expect("an answer").usage.whole_cost(), Some(63));
}

#[test]
fn the_price_of_cache_reads_writes_and_long_prompts_is_in_the_cost() {
    let models = models();
    let mut usage = Usage::new(1_000, 200);
    (usage.cached, usage.cache_write, usage.cache_write_long, usage.reasoning) = (50_000, 3_000, 1_000, 150);
    let cost = 1_000 * 4 + 50_000 / 5 + 2_000 * 5 + 1_000 * 8 + 200 * 20;
    assert_eq!(models.cost("claude-opus-5-5", &usage), Some(cost));
    usage.cached = 100_000;
    let long = (1_000.0 * 0.5 + 100_000.0 * 0.05 + 2_000.0 * 0.625 + 1_000.0 + 200.0 * 2.5) as u64;
    assert_eq!(models.cost("claude-haiku-5-5", &usage), Some(long));
    assert_eq!(models.cost("gpt-5-pro", &usage), None, "it has no price for what a cache served");
}

#[test]
fn the_file_is_read_once() {
    let (first, second) = (models(), models());
    let entry = |models: &Catalogue| std::ptr::from_ref(models.find("gpt-5").expect("known")).addr();
    assert_eq!(entry(&first), entry(&second));
}
