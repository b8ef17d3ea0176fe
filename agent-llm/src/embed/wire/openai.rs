//! OpenAI's `/embeddings`, and compatible servers.

use agent_core::Result;
use agent_retrieval::embed::EmbedResponse;
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Form, Server, numbers};
use crate::{
    embed::{
        EmbedCall, EmbedLimits,
        vectors::{Numbers, misplaced, used},
    },
    wire::endpoint::endpoint,
};

/// Limit of most servers per call.
const MOST_TEXTS: usize = 2_048;

pub(super) struct OpenAi;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
    #[serde(default)]
    usage: Option<Used>,
}

#[derive(Deserialize)]
struct Item {
    embedding: Numbers,
    #[serde(default)]
    index: Option<usize>,
}

#[derive(Deserialize)]
struct Used {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
}

fn body(server: &Server, call: &EmbedCall<'_>) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), json!(server.model));
    body.insert("input".into(), json!(call.texts));
    if let Some(dimensions) = call.dimensions {
        body.insert(server.profile.dimensions.clone().unwrap_or_else(|| "dimensions".into()), json!(dimensions));
    }
    let cut = if call.truncate { &server.profile.truncating } else { &server.profile.refusing };
    let purpose = server.profile.purposes.get(&call.purpose);
    body.extend(server.profile.compact.iter().chain(cut).chain(purpose.into_iter().flatten()).map(owned));
    body
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

impl Form for OpenAi {
    fn uri(&self, base: &str, _: &str) -> Result<Uri> {
        endpoint(base, "/embeddings")
    }

    fn limits(&self, server: &Server) -> EmbedLimits {
        server.profile.limits(MOST_TEXTS)
    }

    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        Ok(server.request(&body(server, call)))
    }

    fn decode(&self, server: &Server, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let mut answer: Answer = server.read(body)?;
        if answer.data.iter().all(|item| item.index.is_some()) {
            answer.data.sort_by_key(|item| item.index);
            let is_misplaced = |(at, item): (usize, &Item)| item.index != Some(at);
            if answer.data.iter().enumerate().any(is_misplaced) {
                let places: Vec<_> = answer.data.iter().filter_map(|item| item.index).collect();
                return Err(misplaced(&server.provider, &format!("they are of the texts {places:?}")));
            }
        }
        let vectors = numbers(answer.data.into_iter().map(|item| item.embedding));
        let tokens = answer.usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens));
        Ok(EmbedResponse::new(vectors, used(tokens)))
    }
}
