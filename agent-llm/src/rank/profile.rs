//! How a provider is asked for the order of documents: [`RankProfile`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Auth;

/// How requests for ranks and their answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RankWire {
    /// `cohere`: Cohere's `/rerank`, which Jina, Together and servers for your own machine speak too.
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
    /// Its name, as in the table of providers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cohere => "cohere",
            Self::Voyage => "voyage",
            Self::Google => "google",
            Self::Bedrock => "bedrock",
        }
    }
}

/// How a provider is asked for the order of documents: a part of a [`Provider`](crate::Provider). It is data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RankProfile {
    /// How requests and answers are written.
    pub wire: RankWire,
    /// Its address, without what the wire adds. If it is empty, the address at which the provider serves models.
    pub base_url: String,
    /// How the key is shown. Default: as for models, or else as a bearer.
    pub auth: Option<Auth>,
    /// Fields that every request has.
    pub extra: Map<String, Value>,
    /// Whether recorded exchanges with it are read and written again without loss. Default: nobody has tried it.
    pub recorded: bool,
}
