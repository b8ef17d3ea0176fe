//! Texts that are too long, prices, and differences between purposes.

use agent_core::ErrorKind;
use agent_llm::{Catalogue, embedder};
use agent_retrieval::embed::{EmbedPurpose, EmbedRequest, Embedder};
use serde_json::{Value, json};

use super::provider::{Answer, Provider};

fn openai() -> Provider {
    Provider::new(|_, json| {
        let texts = json["input"].as_array().expect("a list").len();
        let data: Vec<_> = (0..texts).map(|index| json!({"index": index, "embedding": [1.0]})).collect();
        Answer::new(200, json!({"data": data, "usage": {"prompt_tokens": 1_000_000}}))
    })
}

#[tokio::test]
async fn what_vectors_cost_is_the_sum_of_their_calls() {
    let provider = openai();
    let small = embedder("openai:text-embedding-3-small").transport(provider.clone()).batch(1).build().expect("builds");
    let response = small.embed(EmbedRequest::documents(["a", "b"])).await.expect("vectors");
    assert_eq!((response.usage.calls, response.usage.whole_cost()), (2, Some(40_000)));
    assert_eq!(small.info().dimensions, Some(1_536));
    let prices = Catalogue::empty()
        .with(&json!({"models": {"ours": {"provider": "gateway", "price": {"input": 1, "output": 0}}}}))
        .expect("a catalogue");
    let own = embedder("openai:ours").base_url("http://gateway:1/v1").transport(provider).catalogue(prices);
    let response = own.build().expect("builds").embed(EmbedRequest::query("a")).await.expect("vectors");
    assert_eq!(response.usage.cost, 1_000_000);
}

#[cfg(feature = "tokens")]
#[tokio::test]
async fn a_text_that_is_too_long_is_named_or_cut() {
    let provider = openai();
    let build = |cut| embedder("openai:text-embedding-3-small").transport(provider.clone()).truncate(cut).build();
    let texts = ["short".to_owned(), "word ".repeat(9_000)];
    let error = build(false).expect("builds").embed(EmbedRequest::documents(&texts)).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::ContextOverflow);
    assert!(
        error.message().starts_with("text 1 has 900") && error.message().contains("and 8192 are allowed"),
        "{error}"
    );
    assert_eq!(provider.calls(), 0);
    build(true).expect("builds").embed(EmbedRequest::documents(&texts)).await.expect("vectors");
    let sent = provider.bodies()[0]["input"][1].as_str().expect("a text").len();
    assert!((8_100 * 5..=8_192 * 5).contains(&sent), "{sent}");
}

#[cfg(feature = "tokens")]
#[tokio::test]
async fn texts_are_split_by_their_tokens_too() {
    let provider = openai();
    let build = embedder("openai:text-embedding-3-small").transport(provider.clone()).build().expect("builds");
    build.embed(EmbedRequest::documents(vec!["word ".repeat(8_000); 40])).await.expect("vectors");
    let sizes: Vec<_> = provider.bodies().iter().map(|json| json["input"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(sizes, [37, 3], "300,000 tokens are allowed in one call");
}

#[tokio::test]
async fn a_provider_that_cuts_by_itself_is_told_whether_to() {
    let asked = async |name: &str, answer: Value, cut: bool| {
        let provider = Provider::new(move |_, _| Answer::new(200, &answer));
        let build = embedder(name).transport(provider.clone()).truncate(cut).build().expect("builds");
        build.embed(EmbedRequest::query("hi")).await.expect("a vector");
        provider.bodies().remove(0)
    };
    let openai = json!({"data": [{"embedding": [1.0]}]});
    assert_eq!(asked("voyage:voyage-3.5", openai.clone(), true).await["truncation"], true);
    assert_eq!(asked("nvidia:nvidia/nv-embedqa-e5-v5", openai.clone(), true).await["truncate"], "END");
    assert_eq!(asked("nvidia:nvidia/nv-embedqa-e5-v5", openai, false).await["input_type"], "query");
    let ollama = json!({"embeddings": [[1.0]]});
    assert_eq!(asked("ollama:m", ollama, true).await["truncate"], true);
    let cohere = json!({"embeddings": {"float": [[1.0]]}});
    assert_eq!(asked("cohere:embed-v4.0", cohere, true).await["truncate"], "END");
}

#[tokio::test]
async fn a_purpose_is_told_in_the_providers_words() {
    let told = async |purpose| {
        let provider = Provider::new(|_, _| Answer::new(200, json!({"embeddings": [{"values": [1.0]}]})));
        let gemini = embedder("gemini:gemini-embedding-001").transport(provider.clone()).build().expect("builds");
        gemini.embed(EmbedRequest::query("hi").purpose(purpose)).await.expect("a vector");
        provider.bodies()[0]["requests"][0]["taskType"].as_str().expect("a word").to_owned()
    };
    assert_eq!(told(EmbedPurpose::Document).await, "RETRIEVAL_DOCUMENT");
    assert_eq!(told(EmbedPurpose::Similarity).await, "SEMANTIC_SIMILARITY");
    assert_eq!(told(EmbedPurpose::Clustering).await, "CLUSTERING");
}
