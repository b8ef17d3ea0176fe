//! A provider's embedding API as data: [`EmbedProfile`].

use std::collections::HashMap;

use agent_retrieval::embed::EmbedPurpose;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EmbedLimits;
use crate::Auth;

/// Protocol of embedding requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EmbedWire {
    /// `openai`: OpenAI's `/embeddings`, which most servers implement with fields of their own.
    #[default]
    Openai,
    /// `gemini`: Gemini's `batchEmbedContents`.
    Gemini,
    /// `vertex`: `predict` of Vertex AI.
    Vertex,
    /// `bedrock`: `invoke` of Amazon Bedrock, for Amazon's and Cohere's models.
    Bedrock,
    /// `cohere`: Cohere's `/embed`, version 2.
    Cohere,
    /// `ollama`: Ollama's own `/api/embed`.
    Ollama,
}

impl EmbedWire {
    /// Returns the name, as in the table of providers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Vertex => "vertex",
            Self::Bedrock => "bedrock",
            Self::Cohere => "cohere",
            Self::Ollama => "ollama",
        }
    }
}

/// A provider's embedding API, as part of a [`Provider`](crate::Provider). It is data.
///
/// Its fields are also options of an [`EmbedderBuilder`](crate::EmbedderBuilder::option).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EmbedProfile {
    /// Protocol of requests and answers.
    pub wire: EmbedWire,
    /// Base URL, without the path that the wire adds. If empty, the URL at which the provider
    /// serves models on this family's wire.
    pub base_url: String,
    /// Placement of the key. Default: as for models of this family, or else as a bearer token.
    pub auth: Option<Auth>,
    /// Maximum number of texts per call. 0, the default, means the wire's limit.
    pub max_texts: usize,
    /// Maximum number of tokens of all texts of one call. Default: unlimited.
    pub max_tokens: Option<u64>,
    /// Field for the length of the vectors, on the wire `openai`. Default: `dimensions`.
    pub dimensions: Option<String>,
    /// Fields for the purpose of the vectors, on the wire `openai`. Default: none, the purpose
    /// makes no difference.
    pub purposes: HashMap<EmbedPurpose, Map<String, Value>>,
    /// Fields that make the provider truncate texts that are too long, on the wire `openai`.
    /// Default: none, so that texts are truncated before they are sent.
    pub truncating: Map<String, Value>,
    /// Fields that make the provider reject such texts, if it would truncate them by default.
    pub refusing: Map<String, Value>,
    /// Fields that request vectors as base64, on the wire `openai`, which takes a third of the
    /// size. Default: none.
    pub compact: Map<String, Value>,
    /// Fields of every request, such as Ollama's `keep_alive`.
    pub extra: Map<String, Value>,
    /// True if recorded exchanges with it are decoded and encoded again without loss. Default:
    /// false, untested.
    pub recorded: bool,
}

impl EmbedProfile {
    /// Creates the profile of a server with the usual dialect of `wire`.
    pub fn new(wire: EmbedWire, base_url: impl Into<String>) -> Self {
        Self { wire, base_url: base_url.into(), ..Self::default() }
    }

    /// Returns the limits of a call, if the wire accepts at most `texts`.
    pub(super) fn limits(&self, texts: usize) -> EmbedLimits {
        let most = if self.max_texts == 0 { texts } else { self.max_texts.min(texts) };
        EmbedLimits { texts: most, tokens: self.max_tokens }
    }
}
