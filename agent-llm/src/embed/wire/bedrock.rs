//! `invoke` of Amazon Bedrock: Amazon's Titan, one text at a time, and Cohere's models.

use agent_core::{Error, Result};
use agent_retrieval::embed::EmbedResponse;
use bytes::Bytes;
use http::{HeaderMap, Request, Uri};
use serde::{Deserialize, Serialize};

use super::{Form, Server, cohere, numbers};
use crate::{
    embed::{
        EmbedCall, EmbedLimits,
        vectors::{Numbers, used},
    },
    wire::endpoint::{endpoint, percent_encoded},
};

/// Response header with the usage.
const TOKENS: &str = "x-amzn-bedrock-input-token-count";

/// Vendor of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    Amazon,
    Cohere,
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

impl Maker {
    pub(super) fn of(model: &str) -> Result<Self> {
        if model.contains("cohere.") {
            Ok(Self::Cohere)
        } else if model.contains("amazon.titan-embed") {
            Ok(Self::Amazon)
        } else {
            Err(Error::config(format!(
                "it is not known how '{model}' makes vectors on Bedrock: there are amazon.titan-embed-.. and cohere.embed-.."
            )))
        }
    }
}

impl Form for Maker {
    fn uri(&self, base: &str, model: &str) -> Result<Uri> {
        endpoint(base, &format!("/model/{}/invoke", percent_encoded(model)))
    }

    fn limits(&self, server: &Server) -> EmbedLimits {
        server.profile.limits(match self {
            Self::Amazon => 1,
            Self::Cohere => cohere::MOST_TEXTS,
        })
    }

    fn encode(&self, server: &Server, call: &EmbedCall<'_>) -> Result<Request<Bytes>> {
        if *self == Self::Cohere {
            return Ok(server.request(&cohere::Body::new(None, call)));
        }
        let [text] = call.texts else { return Err(Error::config("Titan takes one text at a time")) };
        let body = Titan { input_text: text, dimensions: call.dimensions };
        Ok(server.request(&body))
    }

    fn decode(&self, server: &Server, headers: &HeaderMap, body: &[u8]) -> Result<EmbedResponse> {
        let beside = headers.get(TOKENS).and_then(|tokens| tokens.to_str().ok()?.parse().ok());
        match self {
            Self::Cohere => Ok(server.read::<cohere::Answer>(body)?.response(beside)),
            Self::Amazon => {
                let answer: OfTitan = server.read(body)?;
                let tokens = answer.input_text_token_count.or(beside);
                Ok(EmbedResponse::new(numbers([answer.embedding]), used(tokens)))
            }
        }
    }
}
