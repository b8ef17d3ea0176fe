//! OpenAI's `/embeddings`, and the servers that are alike.

use agent_core::{Result, embed::EmbedResponse};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::request;
use crate::{
    embed::{
        EmbedCall, EmbedCodec, EmbedLimits, EmbedProfile,
        vectors::{Numbers, misplaced, read, used},
    },
    wire::endpoint::endpoint,
};

/// What most servers take in one call.
const MOST_TEXTS: usize = 2_048;

#[derive(Debug)]
pub(super) struct OpenAi {
    uri: Uri,
    provider: String,
    model: String,
    profile: EmbedProfile,
}

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

impl OpenAi {
    pub(super) fn new(provider: String, model: String, profile: EmbedProfile) -> Result<Self> {
        Ok(Self { uri: endpoint(&profile.base_url, "/embeddings")?, provider, model, profile })
    }

    fn body(&self, call: &EmbedCall<'_>) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), json!(self.model));
        body.insert("input".into(), json!(call.texts));
        if let Some(dimensions) = call.dimensions {
            body.insert(self.profile.dimensions.clone().unwrap_or_else(|| "dimensions".into()), json!(dimensions));
        }
        let cut = if call.truncate { &self.profile.truncating } else { &self.profile.refusing };
        let purpose = self.profile.purposes.get(&call.purpose);
        body.extend(self.profile.compact.iter().chain(cut).chain(purpose.into_iter().flatten()).map(owned));
        body
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

impl EmbedCodec for OpenAi {
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
        Ok(request(&self.uri, &self.body(call), &self.profile.extra))
    }

    fn decode(&self, _: &EmbedCall<'_>, _: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let mut answer: Answer = read(&self.provider, body, "the answer holds no vectors")?;
        if answer.data.iter().all(|item| item.index.is_some()) {
            answer.data.sort_by_key(|item| item.index);
            let is_misplaced = |(at, item): (usize, &Item)| item.index != Some(at);
            if answer.data.iter().enumerate().any(is_misplaced) {
                let places: Vec<_> = answer.data.iter().filter_map(|item| item.index).collect();
                return Err(misplaced(&self.provider, &format!("they are of the texts {places:?}")));
            }
        }
        let vectors = answer.data.into_iter().map(|item| item.embedding.0).collect();
        let tokens = answer.usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens));
        Ok(EmbedResponse::new(vectors, used(tokens)))
    }
}
