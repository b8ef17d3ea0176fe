//! `predict` of Vertex AI, for Google's own embedding models.

use agent_core::Result;
use agent_retrieval::embed::EmbedResponse;
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::{Form, Server, gemini::task, numbers};
use crate::{
    embed::{
        EmbedCall, EmbedLimits,
        vectors::{Numbers, used},
    },
    wire::endpoint::{endpoint, percent_encoded},
};

const MOST_TEXTS: usize = 250;
const MOST_TOKENS: u64 = 20_000;

pub(super) struct Vertex;

#[derive(Serialize)]
struct Body<'a> {
    instances: Vec<Instance<'a>>,
    parameters: Parameters,
}

#[derive(Serialize)]
struct Instance<'a> {
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_type: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    auto_truncate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_dimensionality: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    predictions: Vec<Prediction>,
}

#[derive(Deserialize)]
struct Prediction {
    embeddings: Embeddings,
}

#[derive(Deserialize)]
struct Embeddings {
    values: Numbers,
    #[serde(default)]
    statistics: Option<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(default)]
    token_count: Option<f64>,
}

impl Form for Vertex {
    fn uri(&self, base: &str, model: &str) -> Result<Uri> {
        endpoint(base, &format!("/models/{}:predict", percent_encoded(model)))
    }

    fn limits(&self, server: &Server) -> EmbedLimits {
        // Gemini models accept one text at a time on this API.
        let texts = if server.model.starts_with("gemini-") { 1 } else { MOST_TEXTS };
        let limits = server.profile.limits(texts);
        EmbedLimits { tokens: limits.tokens.or(Some(MOST_TOKENS)), ..limits }
    }

    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        let task_type = task(call.purpose);
        let instances = call.texts.iter().map(|content| Instance { content, task_type }).collect();
        let parameters = Parameters { auto_truncate: call.truncate, output_dimensionality: call.dimensions };
        Ok(server.request(&Body { instances, parameters }))
    }

    fn decode(&self, server: &Server, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let answer: Answer = server.read(body)?;
        let counts = answer.predictions.iter().map(|one| one.embeddings.statistics.as_ref()?.token_count);
        let tokens = counts.sum::<Option<f64>>().map(|tokens| tokens as u64);
        let vectors = numbers(answer.predictions.into_iter().map(|one| one.embeddings.values));
        Ok(EmbedResponse::new(vectors, used(tokens)))
    }
}
