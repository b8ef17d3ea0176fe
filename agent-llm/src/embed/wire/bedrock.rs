//! `invoke` of Amazon Bedrock: Amazon's Titan, one text at a time, and Cohere's models.

use agent_core::{Error, Result, embed::EmbedResponse};
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::{cohere, request};
use crate::{
    embed::{
        EmbedCall, EmbedCodec, EmbedLimits, EmbedProfile,
        vectors::{Numbers, read, used},
    },
    wire::endpoint::{endpoint, percent_encoded},
};

/// The header in which it says what was used.
const TOKENS: &str = "x-amzn-bedrock-input-token-count";

/// Whose model it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Amazon,
    Cohere,
}

#[derive(Debug)]
pub(super) struct Bedrock {
    uri: Uri,
    provider: String,
    model: String,
    maker: Maker,
    profile: EmbedProfile,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Titan<'a> {
    input_text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfTitan {
    embedding: Numbers,
    #[serde(default)]
    input_text_token_count: Option<u64>,
}

impl Bedrock {
    pub(super) fn new(provider: String, model: String, profile: EmbedProfile) -> Result<Self> {
        let maker = if model.contains("cohere.") {
            Maker::Cohere
        } else if model.contains("amazon.titan-embed") {
            Maker::Amazon
        } else {
            return Err(Error::config(format!(
                "it is not known how '{model}' makes vectors on Bedrock: there are amazon.titan-embed-.. and cohere.embed-.."
            )));
        };
        let uri = endpoint(&profile.base_url, &format!("/model/{}/invoke", percent_encoded(&model)))?;
        Ok(Self { uri, provider, model, maker, profile })
    }
}

impl EmbedCodec for Bedrock {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn limits(&self) -> EmbedLimits {
        self.profile.limits(match self.maker {
            Maker::Amazon => 1,
            Maker::Cohere => cohere::MOST_TEXTS,
        })
    }

    fn encode(&self, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        if self.maker == Maker::Cohere {
            return Ok(request(&self.uri, &cohere::Body::new(None, call), &self.profile.extra));
        }
        let [text] = call.texts else { return Err(Error::config("Titan takes one text at a time")) };
        let body = Titan { input_text: text, dimensions: call.dimensions };
        Ok(request(&self.uri, &body, &self.profile.extra))
    }

    fn decode(&self, _: &EmbedCall<'_>, headers: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let beside = headers.get(TOKENS).and_then(|tokens| tokens.to_str().ok()?.parse().ok());
        match self.maker {
            Maker::Cohere => {
                Ok(read::<cohere::Answer>(&self.provider, body, "the answer holds no vectors")?.response(beside))
            }
            Maker::Amazon => {
                let answer: OfTitan = read(&self.provider, body, "the answer holds no vector")?;
                let tokens = answer.input_text_token_count.or(beside);
                Ok(EmbedResponse::new(vec![answer.embedding.0], used(tokens)))
            }
        }
    }
}
