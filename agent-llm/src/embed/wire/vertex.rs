//! `predict` of Vertex AI, for Google's own models of vectors.

use agent_core::{Result, embed::EmbedResponse};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::{gemini::task, request};
use crate::{
    embed::{
        EmbedCall, EmbedCodec, EmbedLimits, EmbedProfile,
        vectors::{Numbers, read, used},
    },
    wire::endpoint::{endpoint, percent_encoded},
};

const MOST_TEXTS: usize = 250;
const MOST_TOKENS: u64 = 20_000;

#[derive(Debug)]
pub(super) struct Vertex {
    uri: Uri,
    provider: String,
    model: String,
    profile: EmbedProfile,
}

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

impl Vertex {
    pub(super) fn new(provider: String, model: String, profile: EmbedProfile) -> Result<Self> {
        let path = format!("/models/{}:predict", percent_encoded(&model));
        Ok(Self { uri: endpoint(&profile.base_url, &path)?, provider, model, profile })
    }
}

impl EmbedCodec for Vertex {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        // The models of Gemini take one text at a time here.
        let texts = if self.model.starts_with("gemini-") { 1 } else { MOST_TEXTS };
        let limits = self.profile.limits(texts);
        EmbedLimits { tokens: limits.tokens.or(Some(MOST_TOKENS)), ..limits }
    }

    fn encode(&self, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        let task_type = task(call.purpose);
        let instances = call.texts.iter().map(|content| Instance { content, task_type }).collect();
        let parameters = Parameters { auto_truncate: call.truncate, output_dimensionality: call.dimensions };
        Ok(request(&self.uri, &Body { instances, parameters }, &self.profile.extra))
    }

    fn decode(&self, _: &EmbedCall<'_>, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let answer: Answer = read(&self.provider, body, "the answer holds no vectors")?;
        let counts = answer.predictions.iter().map(|one| one.embeddings.statistics.as_ref()?.token_count);
        let tokens = counts.sum::<Option<f64>>().map(|tokens| tokens as u64);
        let vectors = answer.predictions.into_iter().map(|one| one.embeddings.values.0).collect();
        Ok(EmbedResponse::new(vectors, used(tokens)))
    }
}
