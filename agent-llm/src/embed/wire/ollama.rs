//! Ollama's own `/api/embed`.

use agent_core::Result;
use agent_retrieval::embed::EmbedResponse;
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

/// The server has no limit, but a call with more texts would take too long.
const MOST_TEXTS: usize = 256;

pub(super) struct Ollama;

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

impl Form for Ollama {
    fn uri(&self, base: &str, _: &str) -> Result<Uri> {
        // The configured base URL is often that of the server's OpenAI-compatible API.
        let base = base.trim_end_matches('/');
        endpoint(base.strip_suffix("/v1").unwrap_or(base), "/api/embed")
    }

    fn limits(&self, server: &Server) -> EmbedLimits {
        server.profile.limits(MOST_TEXTS)
    }

    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        let (input, truncate, dimensions) = (call.texts, call.truncate, call.dimensions);
        let body = Body { model: &server.model, input, truncate, dimensions };
        Ok(server.request(&body))
    }

    fn decode(&self, server: &Server, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let answer: Answer = server.read(body)?;
        Ok(EmbedResponse::new(numbers(answer.embeddings), used(answer.prompt_eval_count)))
    }
}
