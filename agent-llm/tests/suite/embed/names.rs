//! Embedders and rerankers by name, and their rows in the guide.

use agent_core::ErrorKind;
use agent_llm::{Provider, Providers, embedder, reranker};
use agent_retrieval::embed::{EmbedRequest, Embedder};
use serde_json::json;

use super::provider::{self, Answer};

fn refused(name: &str) -> String {
    let error = embedder(name).build().expect_err("it cannot be built");
    assert_eq!(error.kind(), ErrorKind::Config);
    error.message().to_owned()
}

#[test]
fn what_cannot_be_built_says_why() {
    assert!(refused("text-embedding-3-small").contains("did you mean openai:text-embedding-3-small?"));
    assert!(refused("anthropic:claude").contains("anthropic is not known to serve embeddings"));
    assert!(refused("voyage:").contains("which model of voyage?"));
    assert!(refused("bedrock:meta.llama").contains("AWS_REGION"), "what is missing comes first");
    let titan = embedder("bedrock:meta.llama").option("region", "eu-west-1").api_key("..").build();
    assert!(titan.expect_err("no embedder").message().contains("amazon.titan-embed"));
    let error = embedder("openai:m").api_key("..").option("tone", 1).build().expect_err("no such option");
    assert!(error.message().contains("there are auth, compact, dimensions, "), "{error}");
    let error = reranker("openai:m").build().err().expect("it has none");
    assert!(error.message().contains("openai is not known to serve rerankers"), "{error}");
    assert!(agent_llm::model("voyage:m").build().expect_err("none").message().contains("no wire of models"));
}

#[test]
fn every_provider_of_the_table_is_reached_when_all_is_set() {
    for provider in Providers::builtin().iter() {
        let model = if provider.name == "bedrock" { "cohere.embed-v4:0" } else { "m" };
        let places = provider.places.keys();
        if provider.embed.is_some() {
            let builder = provider.embedder(model).api_key("..");
            let builder = places.clone().fold(builder, |builder, place| builder.option(place, "x"));
            assert_eq!(builder.build().expect(&provider.name).info().provider, provider.name);
        }
        if provider.rerank.is_some() {
            let builder = provider.reranker(model).api_key("..");
            let builder = places.fold(builder, |builder, place| builder.option(place, "x"));
            assert_eq!(builder.build().expect(&provider.name).info().provider, provider.name);
        }
    }
}

#[tokio::test]
async fn a_gateway_that_is_like_a_provider_is_asked_at_its_own_address() {
    let gateway = json!([{"like": "openai", "name": "gateway", "keys": ["GATEWAY_KEY"], "base_url_variable": null,
        "openai": {"base_url": "https://llm.acme.example/v1"}}]);
    let provider = provider::Provider::new(|_, _| Answer::new(200, json!({"data": [{"embedding": [1.0]}]})));
    let table = Providers::builtin().with(&gateway).expect("a table");
    let own = table.embedder("gateway:m").api_key("..").transport(provider.clone()).build().expect("builds");
    own.embed(EmbedRequest::query("a")).await.expect("a vector");
    assert_eq!(provider.uri(), "https://llm.acme.example/v1/embeddings");
    let other = embedder("voyage:m").base_url("http://gpu7:8000/v1").transport(provider.clone()).build();
    let other = other.expect("builds");
    other.embed(EmbedRequest::query("a")).await.expect("a vector");
    assert_eq!((provider.uri().as_str(), other.info().provider.as_str()), ("http://gpu7:8000/v1/embeddings", "gpu7"));
    assert_eq!(provider.bodies()[1]["input_type"], "query", "it is asked as the one that it was said to be");
    assert_eq!(provider.header("authorization"), None, "and shown no key");
}

#[tokio::test]
async fn the_embedded_one_needs_nothing() {
    let hashed = embedder("offline:hashed").dimensions(64).build().expect("builds");
    let vectors = hashed.embed(EmbedRequest::query("bees")).await.expect("a vector").vectors;
    assert_eq!((vectors[0].len(), hashed.info().dimensions), (64, Some(64)));
}

/// Returns the row of a provider in the guide.
fn row(provider: &Provider) -> String {
    let tried = |recorded| if recorded { "recorded" } else { "untested" };
    let embed = provider.embed.as_ref().map_or_else(
        || "| |".to_owned(),
        |profile| format!("| `{}` | {} |", profile.wire.as_str(), tried(profile.recorded)),
    );
    let rerank = provider.rerank.as_ref().map(|profile| format!("`{}`", profile.wire.as_str())).unwrap_or_default();
    let keys: Vec<_> = provider.keys.iter().map(|key| format!("`{}`", key.variable)).collect();
    let optional = if provider.keyless { " (optional)" } else { "" };
    format!("| `{}` | {}{optional} {embed} {rerank} |", provider.name, keys.join(", "))
}

#[test]
fn the_guide_has_a_row_for_each_provider_of_embedders_or_rerankers() {
    let guide = include_str!("../../../../docs/guide/embeddings.md");
    let has = |provider: &&Provider| provider.embed.is_some() || provider.rerank.is_some();
    let rows: Vec<_> = Providers::builtin().iter().filter(has).map(row).collect();
    let table: Vec<_> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(table == rows, "the table of docs/guide/embeddings.md is to be:\n{}", rows.join("\n"));
}
