//! Cohere's `/embed`, version 2, and the same format as used by Cohere's models on other platforms.

use agent_core::Result;
use agent_retrieval::embed::{EmbedPurpose, EmbedResponse};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::{Form, Server, numbers};
use crate::{
    embed::{
        EmbedCall, EmbedLimits,
        vectors::{Numbers, used},
    },
    wire::endpoint::endpoint,
};

pub(super) const MOST_TEXTS: usize = 96;

pub(super) struct Cohere;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    texts: &'a [String],
    input_type: &'static str,
    embedding_types: [&'static str; 1],
    truncate: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_dimension: Option<usize>,
}

impl<'a> Body<'a> {
    /// Creates the body; it omits the model if the URL names it.
    pub(super) fn new(model: Option<&'a str>, call: &EmbedCall<'a>) -> Self {
        let input_type = match call.purpose {
            EmbedPurpose::Query => "search_query",
            EmbedPurpose::Classification => "classification",
            EmbedPurpose::Clustering | EmbedPurpose::Similarity => "clustering",
            _ => "search_document",
        };
        let truncate = if call.truncate { "END" } else { "NONE" };
        let (texts, output_dimension) = (call.texts, call.dimensions);
        Self { model, texts, input_type, embedding_types: ["float"], truncate, output_dimension }
    }
}

#[derive(Deserialize)]
pub(super) struct Answer {
    embeddings: Embeddings,
    #[serde(default)]
    meta: Option<Meta>,
}

/// Vectors keyed by number type, or, in an older format, without a type.
#[derive(Deserialize)]
#[serde(untagged)]
enum Embeddings {
    ByType { float: Vec<Numbers> },
    Floats(Vec<Numbers>),
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

impl Answer {
    /// Converts to a response. Usage comes from the body if present, else from `beside`.
    pub(super) fn response(self, beside: Option<u64>) -> EmbedResponse {
        let vectors = match self.embeddings {
            Embeddings::ByType { float } | Embeddings::Floats(float) => float,
        };
        let billed = self.meta.and_then(|meta| meta.billed_units?.input_tokens).map(|tokens| tokens as u64);
        EmbedResponse::new(numbers(vectors), used(billed.or(beside)))
    }
}

impl Form for Cohere {
    fn uri(&self, base: &str, _: &str) -> Result<Uri> {
        endpoint(base, "/embed")
    }

    fn limits(&self, server: &Server) -> EmbedLimits {
        server.profile.limits(MOST_TEXTS)
    }

    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        Ok(server.request(&Body::new(Some(&server.model), call)))
    }

    fn decode(&self, server: &Server, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        Ok(server.read::<Answer>(body)?.response(None))
    }
}
