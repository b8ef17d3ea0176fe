//! Reranking wires: requests and answers.

use agent_core::{Error, Result};
use agent_retrieval::rank::{RankRequest, RankResponse, Ranked};
use bytes::Bytes;
use http::{Request, Uri};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{RankProfile, RankWire};
use crate::{
    embed::{read, used},
    error::not_the_protocol,
    wire::{
        endpoint::{endpoint, percent_encoded, post},
        json::{lay, write},
    },
};

/// Codec for one model of a provider.
#[derive(Debug)]
pub(super) struct Codec {
    uri: Uri,
    pub(super) provider: String,
    pub(super) model: String,
    wire: RankWire,
    extra: Map<String, Value>,
}

/// Union of all wires' answers; each fills some of the fields.
#[derive(Deserialize)]
struct Answer {
    #[serde(alias = "data", alias = "records")]
    results: Vec<Item>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(default)]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: Option<usize>,
    /// Google identifies a document by the id in the request.
    #[serde(default)]
    id: Option<String>,
    #[serde(alias = "relevance_score")]
    score: f32,
}

#[derive(Deserialize)]
struct Used {
    #[serde(default)]
    total_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    billed_units: Option<Billed>,
}

#[derive(Deserialize)]
struct Billed {
    #[serde(default)]
    input_tokens: Option<f64>,
}

impl Codec {
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the profile's base URL is invalid.
    pub(super) fn new(provider: String, model: String, profile: RankProfile) -> Result<Self> {
        let path = match profile.wire {
            RankWire::Google => "/rankingConfigs/default_ranking_config:rank".to_owned(),
            RankWire::Bedrock => format!("/model/{}/invoke", percent_encoded(&model)),
            _ => "/rerank".to_owned(),
        };
        let uri = endpoint(&profile.base_url, &path)?;
        Ok(Self { uri, provider, model, wire: profile.wire, extra: profile.extra })
    }

    pub(super) fn encode(&self, req: &RankRequest) -> Request<Bytes> {
        let (model, query, documents) = (&self.model, &req.query, &req.documents);
        let mut body = match self.wire {
            RankWire::Cohere | RankWire::Voyage => json!({"model": model, "query": query, "documents": documents}),
            // The URL names the model; Cohere's models require the API version in the body.
            RankWire::Bedrock if model.contains("cohere.") => {
                json!({"api_version": 2, "query": query, "documents": documents})
            }
            RankWire::Bedrock => json!({"query": query, "documents": documents}),
            RankWire::Google => {
                let record = |(at, text): (usize, &String)| json!({"id": at.to_string(), "content": text});
                let records: Vec<_> = documents.iter().enumerate().map(record).collect();
                json!({"model": model, "query": query, "records": records, "ignoreRecordDetailsInResponse": true})
            }
        };
        if let Some(top) = req.top {
            let name = match self.wire {
                RankWire::Voyage => "top_k",
                RankWire::Google => "topN",
                _ => "top_n",
            };
            body[name] = json!(top.min(documents.len()));
        }
        lay(&mut body, &Value::Object(self.extra.clone()));
        let mut out = Vec::new();
        write(&body, &mut out);
        post(self.uri.clone(), out.into())
    }

    pub(super) fn decode(&self, req: &RankRequest, body: &[u8]) -> Result<RankResponse> {
        let answer: Answer = read(&self.provider, body, "the answer holds no ranks")?;
        let mut seen = vec![false; req.documents.len()];
        let mut ranked = Vec::with_capacity(answer.results.len());
        for item in answer.results {
            let index = item.index.or_else(|| item.id.as_ref()?.parse().ok());
            let is_new = index.and_then(|at| seen.get_mut(at)).is_some_and(|seen| !std::mem::replace(seen, true));
            match index {
                Some(index) if is_new && item.score.is_finite() => ranked.push(Ranked::new(index, item.score)),
                _ => return Err(self.misplaced(index, req.documents.len())),
            }
        }
        let billed = answer.meta.and_then(|meta| meta.billed_units?.input_tokens).map(|tokens| tokens as u64);
        let tokens = answer.usage.and_then(|usage| usage.total_tokens).or(billed);
        Ok(RankResponse::new(ranked, used(tokens)).best(req.top))
    }

    fn misplaced(&self, index: Option<usize>, documents: usize) -> Error {
        let why = format!("it ranks {index:?} of {documents} documents, or one twice, or without a score");
        not_the_protocol(&self.provider, "the answer's ranks are not those of the documents", &why)
    }
}
