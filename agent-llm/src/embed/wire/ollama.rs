//! Ollama's own `/api/embed`.

use agent_core::{Result, embed::EmbedResponse};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::request;
use crate::{
    embed::{
        EmbedCall, EmbedCodec, EmbedLimits, EmbedProfile,
        vectors::{Numbers, read, used},
    },
    wire::endpoint::endpoint,
};

/// It takes any number, and works on them for so long that a call should end.
const MOST_TEXTS: usize = 256;

#[derive(Debug)]
pub(super) struct Ollama {
    uri: Uri,
    provider: String,
    model: String,
    profile: EmbedProfile,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: &'a [String],
    truncate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Numbers>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
}

impl Ollama {
    pub(super) fn new(provider: String, model: String, profile: EmbedProfile) -> Result<Self> {
        // The address of its server is often said with that of its other API.
        let base = profile.base_url.trim_end_matches('/');
        let uri = endpoint(base.strip_suffix("/v1").unwrap_or(base), "/api/embed")?;
        Ok(Self { uri, provider, model, profile })
    }
}

impl EmbedCodec for Ollama {
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
        let (input, truncate, dimensions) = (call.texts, call.truncate, call.dimensions);
        let body = Body { model: &self.model, input, truncate, dimensions };
        Ok(request(&self.uri, &body, &self.profile.extra))
    }

    fn decode(&self, _: &EmbedCall<'_>, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let answer: Answer = read(&self.provider, body, "the answer holds no vectors")?;
        let vectors = answer.embeddings.into_iter().map(|numbers| numbers.0).collect();
        Ok(EmbedResponse::new(vectors, used(answer.prompt_eval_count)))
    }
}
