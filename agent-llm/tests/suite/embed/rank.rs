//! Rerankers.

use std::sync::Arc;

use agent_core::{ErrorKind, Result};
use agent_llm::{Catalogue, RerankerBuilder, reranker};
use agent_retrieval::rank::{RankRequest, RankResponse, Reranker};
use serde_json::{Value, json};

use super::provider::{Answer, Provider};

const KEY: &str = "sk-a-secret-of-ours";

/// Reranking API of one provider: its name, its URL, the whole request for two of three documents,
/// and an answer.
struct Family {
    name: &'static str,
    uri: &'static str,
    asked: fn() -> Value,
    /// The third document is the best, then the first.
    answer: fn() -> Value,
    tokens: u64,
}

fn results() -> Value {
    json!([{"index": 0, "relevance_score": 0.25}, {"index": 2, "relevance_score": 0.75}])
}

const FAMILIES: &[Family] = &[
    Family {
        name: "cohere:rerank-v3.5",
        uri: "https://api.cohere.com/v2/rerank",
        asked: || json!({"model": "rerank-v3.5", "query": "q", "documents": ["a", "b", "c"], "top_n": 2}),
        answer: || json!({"results": results(), "meta": {"billed_units": {"search_units": 1}}}),
        tokens: 0,
    },
    Family {
        name: "jina:jina-reranker-v2-base-multilingual",
        uri: "https://api.jina.ai/v1/rerank",
        asked: || json!({"model": "jina-reranker-v2-base-multilingual", "query": "q", "documents": ["a", "b", "c"], "top_n": 2}),
        answer: || json!({"results": results(), "usage": {"total_tokens": 9}}),
        tokens: 9,
    },
    Family {
        name: "together:Salesforce/Llama-Rank-V1",
        uri: "https://api.together.xyz/v1/rerank",
        asked: || json!({"model": "Salesforce/Llama-Rank-V1", "query": "q", "documents": ["a", "b", "c"], "top_n": 2}),
        answer: || json!({"object": "rerank", "results": results(), "usage": {"total_tokens": 9}}),
        tokens: 9,
    },
    Family {
        name: "voyage:rerank-2.5",
        uri: "https://api.voyageai.com/v1/rerank",
        asked: || json!({"model": "rerank-2.5", "query": "q", "documents": ["a", "b", "c"], "top_k": 2}),
        answer: || json!({"object": "list", "data": results(), "usage": {"total_tokens": 9}}),
        tokens: 9,
    },
    Family {
        name: "bedrock:cohere.rerank-v3-5:0",
        uri: "https://bedrock-runtime.eu-west-1.amazonaws.com/model/cohere.rerank-v3-5%3A0/invoke",
        asked: || json!({"api_version": 2, "query": "q", "documents": ["a", "b", "c"], "top_n": 2}),
        answer: || json!({"results": results()}),
        tokens: 0,
    },
    Family {
        name: "vertex:semantic-ranker-default-004",
        uri: "https://discoveryengine.googleapis.com/v1/projects/acme/locations/global/rankingConfigs/\
              default_ranking_config:rank",
        asked: || {
            json!({"model": "semantic-ranker-default-004", "query": "q", "topN": 2,
                "records": [{"id": "0", "content": "a"}, {"id": "1", "content": "b"}, {"id": "2", "content": "c"}],
                "ignoreRecordDetailsInResponse": true})
        },
        answer: || json!({"records": [{"id": "2", "score": 0.75}, {"id": "0", "score": 0.25}]}),
        tokens: 0,
    },
];

fn builder(family: &Family, provider: &Provider) -> RerankerBuilder {
    let builder = reranker(family.name).api_key(KEY).transport(provider.clone());
    match family.name.split_once(':').expect("a provider").0 {
        "vertex" => builder.option("project", "acme"),
        "bedrock" => builder.option("region", "eu-west-1"),
        _ => builder,
    }
}

fn request() -> RankRequest {
    RankRequest::new("q", ["a", "b", "c"]).top(2)
}

async fn rank(family: &Family, provider: &Provider) -> Result<RankResponse> {
    let reranker: Arc<dyn Reranker> = builder(family, provider).build().expect(family.name);
    reranker.rank(request()).await
}

#[tokio::test]
async fn documents_come_in_the_order_of_their_scores() {
    for family in FAMILIES {
        let provider = Provider::new(|_, _| Answer::new(200, (family.answer)()));
        let response = rank(family, &provider).await.expect(family.name);
        let order: Vec<_> = response.ranked.iter().map(|ranked| (ranked.index, ranked.score)).collect();
        assert_eq!(order, [(2, 0.75), (0, 0.25)], "{}", family.name);
        assert_eq!(response.usage.input, family.tokens, "{}", family.name);
        assert_eq!((provider.uri(), &provider.bodies()[0]), (family.uri.to_owned(), &(family.asked)()));
        assert_eq!(provider.header("authorization"), Some(format!("Bearer {KEY}")), "{}", family.name);
    }
}

#[tokio::test(start_paused = true)]
async fn ranks_of_documents_that_there_are_not_are_no_answer() {
    let bad = [
        json!([{"index": 3, "relevance_score": 1.0}]),
        json!([{"index": 1, "relevance_score": 1.0}, {"index": 1, "relevance_score": 0.5}]),
        json!([{"relevance_score": 1.0}]),
        json!([{"index": 0}]),
        json!(7),
    ];
    for family in FAMILIES {
        for results in &bad {
            let results = results.clone();
            let provider = Provider::new(move |_, _| Answer::new(200, json!({"results": results})));
            let error = rank(family, &provider).await.expect_err(family.name);
            assert_eq!((error.kind(), provider.calls()), (ErrorKind::Protocol, 3), "{}: {error}", family.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_tried_again_and_no_secret_is_shown() {
    for family in FAMILIES {
        let provider = Provider::new(|before, _| match before {
            0 => Answer::new(503, json!({"message": "busy"})),
            _ => Answer::new(200, (family.answer)()),
        });
        rank(family, &provider).await.expect(family.name);
        assert_eq!(provider.calls(), 2);
        let provider = Provider::new(|_, _| Answer::new(400, format!("{KEY} is bad")));
        assert!(!format!("{:?}", builder(family, &provider)).contains(KEY));
        let error = rank(family, &provider).await.expect_err(family.name);
        assert!(error.kind() == ErrorKind::InvalidRequest && !format!("{error:?}").contains(KEY), "{error:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_where_there_is_nothing_to_rank() {
    let provider = Provider::new(|_, _| Answer::new(500, ""));
    let reranker = builder(&FAMILIES[0], &provider).build().expect("builds");
    assert!(reranker.rank(RankRequest::new("q", Vec::<String>::new())).await.expect("nothing").ranked.is_empty());
    assert!(reranker.rank(request().top(0)).await.expect("nothing").ranked.is_empty());
    for (query, documents, word) in [(" ", ["a"], "the query is empty"), ("q", [""], "document 0 is empty")] {
        let error = reranker.rank(RankRequest::new(query, documents)).await.expect_err("empty");
        assert!(error.kind() == ErrorKind::InvalidRequest && error.message().starts_with(word), "{error}");
    }
    assert_eq!(provider.calls(), 0);
}

#[tokio::test]
async fn what_it_costs_is_known_where_it_is_paid_by_tokens() {
    let family = FAMILIES.iter().find(|family| family.name.starts_with("voyage")).expect("is there");
    let provider = Provider::new(|_, _| Answer::new(200, (family.answer)()));
    let price = json!({"models": {"rerank-2.5": {"provider": "voyage", "price": {"input": 1_000_000, "output": 0}}}});
    let prices = Catalogue::empty().with(&price).expect("a catalogue");
    let reranker = builder(family, &provider).catalogue(prices).build().expect("builds");
    assert_eq!(reranker.rank(request()).await.expect("ranks").usage.whole_cost(), Some(9_000_000));
}
