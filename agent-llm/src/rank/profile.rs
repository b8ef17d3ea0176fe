//! A provider's reranking API as data: [`RankProfile`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Auth;

/// Protocol of reranking requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RankWire {
    /// `cohere`: Cohere's `/rerank`, which Jina, Together and self-hosted servers also implement.
    #[default]
    Cohere,
    /// `voyage`: Voyage's `/rerank`.
    Voyage,
    /// `google`: the ranking of Google's Discovery Engine.
    Google,
    /// `bedrock`: `invoke` of Amazon Bedrock, for Amazon's and Cohere's models.
    Bedrock,
}

impl RankWire {
    /// Returns the name, as in the table of providers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cohere => "cohere",
            Self::Voyage => "voyage",
            Self::Google => "google",
            Self::Bedrock => "bedrock",
        }
    }
}

/// A provider's reranking API, as part of a [`Provider`](crate::Provider). It is data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RankProfile {
    /// Protocol of requests and answers.
    pub wire: RankWire,
    /// Base URL, without the path that the wire adds. If empty, the URL at which the provider
    /// serves models.
    pub base_url: String,
    /// Placement of the key. Default: as for models, or else as a bearer token.
    pub auth: Option<Auth>,
    /// Fields of every request.
    pub extra: Map<String, Value>,
    /// True if recorded exchanges with it are decoded and encoded again without loss. Default:
    /// false, untested.
    pub recorded: bool,
}
