//! Gemini's `batchEmbedContents`.

use agent_core::{
    Result,
    embed::{EmbedPurpose, EmbedResponse},
};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::request;
use crate::{
    embed::{
        EmbedCall, EmbedCodec, EmbedLimits, EmbedProfile,
        vectors::{Numbers, read, used},
    },
    wire::endpoint::{endpoint, percent_encoded},
};

const MOST_TEXTS: usize = 100;

#[derive(Debug)]
pub(super) struct Gemini {
    uri: Uri,
    provider: String,
    model: String,
    profile: EmbedProfile,
}

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

/// Google's word for a purpose.
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

impl Gemini {
    pub(super) fn new(provider: String, model: &str, profile: EmbedProfile) -> Result<Self> {
        let name = model.strip_prefix("models/").unwrap_or(model);
        let path = format!("/models/{}:batchEmbedContents", percent_encoded(name));
        Ok(Self { uri: endpoint(&profile.base_url, &path)?, provider, model: name.to_owned(), profile })
    }

    fn one<'a>(&self, text: &'a str, call: &EmbedCall<'_>) -> One<'a> {
        One {
            model: format!("models/{}", self.model),
            content: Content { parts: [Part { text }] },
            task_type: task(call.purpose),
            output_dimensionality: call.dimensions,
        }
    }
}

impl EmbedCodec for Gemini {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        self.profile.limits(MOST_TEXTS)
    }

    fn encode(&self, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        let requests = call.texts.iter().map(|text| self.one(text, call)).collect();
        // Too long a text is always cut here: there is no field that forbids it.
        Ok(request(&self.uri, &Body { requests }, &self.profile.extra))
    }

    fn decode(&self, _: &EmbedCall<'_>, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let answer: Answer = read(&self.provider, body, "the answer holds no vectors")?;
        let vectors = answer.embeddings.into_iter().map(|embedding| embedding.values.0).collect();
        Ok(EmbedResponse::new(vectors, used(answer.usage_metadata.and_then(|usage| usage.prompt_token_count))))
    }
}
