//! How a provider is asked for vectors: [`EmbedProfile`].

use std::collections::HashMap;

use agent_core::embed::EmbedPurpose;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::EmbedLimits;
use crate::Auth;

/// How requests for vectors and their answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EmbedWire {
    /// `openai`: OpenAI's `/embeddings`, which most servers speak with fields of their own beside it.
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
    /// Its name, as in the table of providers.
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

/// How a provider is asked for vectors: a part of a [`Provider`](crate::Provider). It is data.
///
/// Its fields are options of an [`EmbedderBuilder`](crate::EmbedderBuilder::option) too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct EmbedProfile {
    /// How requests and answers are written.
    pub wire: EmbedWire,
    /// Its address, without what the wire adds. If it is empty, the address at which the provider serves models on the wire of
    /// this family.
    pub base_url: String,
    /// How the key is shown. Default: as for models of this family, or else as a bearer.
    pub auth: Option<Auth>,
    /// The most texts of one call. 0, the default, is what the wire takes.
    pub max_texts: usize,
    /// The most tokens of all texts of one call. Default: no limit.
    pub max_tokens: Option<u64>,
    /// The field that says how long vectors are to be, on the wire `openai`. Default: `dimensions`.
    pub dimensions: Option<String>,
    /// The fields that say what vectors are for, on the wire `openai`. Default: none, it makes no difference.
    pub purposes: HashMap<EmbedPurpose, Map<String, Value>>,
    /// The fields by which the provider cuts texts that are too long, on the wire `openai`. Default: none, so that texts are
    /// cut before they are sent.
    pub truncating: Map<String, Value>,
    /// The fields by which it refuses them, if it would cut them otherwise.
    pub refusing: Map<String, Value>,
    /// The fields that ask for vectors in base64, on the wire `openai`: they are a third as long on their way. Default: none.
    pub compact: Map<String, Value>,
    /// Fields that every request has, such as Ollama's `keep_alive`.
    pub extra: Map<String, Value>,
    /// Whether recorded exchanges with it are read and written again without loss. Default: nobody has tried it.
    pub recorded: bool,
}

impl EmbedProfile {
    /// A server that speaks `wire` as most do.
    pub fn new(wire: EmbedWire, base_url: impl Into<String>) -> Self {
        Self { wire, base_url: base_url.into(), ..Self::default() }
    }

    /// What a call may hold, if the wire takes `texts` at most.
    pub(super) fn limits(&self, texts: usize) -> EmbedLimits {
        let most = if self.max_texts == 0 { texts } else { self.max_texts.min(texts) };
        EmbedLimits { texts: most, tokens: self.max_tokens }
    }
}
