//! Gemini's `batchEmbedContents`.

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
    wire::endpoint::{endpoint, percent_encoded},
};

const MOST_TEXTS: usize = 100;

pub(super) struct Gemini;

#[derive(Serialize)]
struct Body<'a> {
    requests: Vec<One<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct One<'a> {
    model: String,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_dimensionality: Option<usize>,
}

#[derive(Serialize)]
struct Content<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    embeddings: Vec<Embedding>,
    #[serde(default)]
    usage_metadata: Option<Used>,
}

#[derive(Deserialize)]
struct Embedding {
    values: Numbers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Used {
    #[serde(default)]
    prompt_token_count: Option<u64>,
}

/// Returns Google's name for a purpose.
pub(super) fn task(purpose: EmbedPurpose) -> Option<&'static str> {
    Some(match purpose {
        EmbedPurpose::Document => "RETRIEVAL_DOCUMENT",
        EmbedPurpose::Query => "RETRIEVAL_QUERY",
        EmbedPurpose::Similarity => "SEMANTIC_SIMILARITY",
        EmbedPurpose::Classification => "CLASSIFICATION",
        EmbedPurpose::Clustering => "CLUSTERING",
        _ => return None,
    })
}

fn one<'a>(server: &Server, text: &'a str, call: &EmbedCall<'_>) -> One<'a> {
    One {
        model: format!("models/{}", server.model),
        content: Content { parts: [Part { text }] },
        task_type: task(call.purpose),
        output_dimensionality: call.dimensions,
    }
}

impl Form for Gemini {
    fn uri(&self, base: &str, model: &str) -> Result<Uri> {
        endpoint(base, &format!("/models/{}:batchEmbedContents", percent_encoded(model)))
    }

    fn limits(&self, server: &Server) -> EmbedLimits {
        server.profile.limits(MOST_TEXTS)
    }

    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        let requests = call.texts.iter().map(|text| one(server, text, call)).collect();
        // This API always truncates texts that are too long: no field forbids it.
        Ok(server.request(&Body { requests }))
    }

    fn decode(&self, server: &Server, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let answer: Answer = server.read(body)?;
        let vectors = numbers(answer.embeddings.into_iter().map(|embedding| embedding.values));
        Ok(EmbedResponse::new(vectors, used(answer.usage_metadata.and_then(|usage| usage.prompt_token_count))))
    }
}
