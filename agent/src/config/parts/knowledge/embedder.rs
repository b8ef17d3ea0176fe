//! Embedders and rerankers by name.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::Result;
use agent_llm::embed::HashedEmbedder;
use agent_retrieval::{embed::Embedder, rank::Reranker};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::file::SecretText;

/// The embedder that needs neither a key nor a network.
const HASHED: &str = "hashed";

/// Embedder: its name, or its configuration.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::config) enum EmbedderRef {
    /// `provider:model`, such as `openai:text-embedding-3-small`; or `hashed`, which knows words and no meaning, and needs no key.
    Name(String),
    /// The whole.
    Config(EmbedderConfig),
}

/// Connection to an embedder.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(in crate::config) struct EmbedderConfig {
    /// The embedder: `provider:model`, or `hashed`.
    #[schemars(required)]
    name: String,
    /// Dimensions of the vectors. Default: those of the embedder.
    dimensions: Option<usize>,
    #[serde(flatten)]
    connection: Connection,
}

/// Reranker: its name, or its configuration.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RerankerRef {
    /// `provider:model`, such as `cohere:rerank-v3.5`.
    Name(String),
    /// The whole.
    Config(RerankerConfig),
}

/// Connection to a reranker.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct RerankerConfig {
    /// The reranker: `provider:model`.
    #[schemars(required)]
    name: String,
    #[serde(flatten)]
    connection: Connection,
}

/// Connection to a service.
#[derive(Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
struct Connection {
    /// The key. Default: the variable of the environment that the provider names.
    api_key: Option<SecretText>,
    /// The address of the provider's API. Default: the provider's own.
    base_url: Option<String>,
    /// Headers that go with each request.
    headers: BTreeMap<String, String>,
    /// Further options of the provider, such as a region, by name.
    options: Map<String, Value>,
    /// Number of retries of a call that failed temporarily. Default: 2.
    retries: Option<u32>,
}

/// Two builders of two types with the same methods.
macro_rules! connected {
    ($builder:expr, $connection:expr) => {{
        let (mut builder, connection) = ($builder, $connection);
        if let Some(SecretText(key)) = connection.api_key {
            builder = builder.api_key(key);
        }
        if let Some(url) = connection.base_url {
            builder = builder.base_url(url);
        }
        for (name, value) in connection.headers {
            builder = builder.header(name, value);
        }
        for (name, value) in connection.options {
            builder = builder.option(name, value);
        }
        match connection.retries {
            Some(retries) => builder.retries(retries),
            None => builder,
        }
    }};
}

impl EmbedderRef {
    /// # Errors
    /// An unknown name, and what a provider lacks.
    pub(in crate::config) fn make(&self) -> Result<Arc<dyn Embedder>> {
        let config = match self {
            Self::Name(name) => EmbedderConfig { name: name.clone(), ..EmbedderConfig::default() },
            Self::Config(config) => config.clone(),
        };
        if config.name == HASHED {
            if config.connection != Connection::default() {
                return Err(agent_core::Error::config(
                    "the embedder 'hashed' is reached nowhere: it has a name and dimensions alone",
                ));
            }
            let embedder = HashedEmbedder::new();
            return Ok(Arc::new(config.dimensions.map_or(embedder, |length| embedder.with_dimensions(length))));
        }
        let mut embedder = connected!(agent_llm::embedder(config.name), config.connection);
        if let Some(length) = config.dimensions {
            embedder = embedder.dimensions(length);
        }
        Ok(Arc::new(embedder.build()?))
    }
}

impl RerankerRef {
    /// # Errors
    /// An unknown name, and what a provider lacks.
    pub(super) fn make(&self) -> Result<Arc<dyn Reranker>> {
        let RerankerConfig { name, connection } = match self {
            Self::Name(name) => RerankerConfig { name: name.clone(), ..RerankerConfig::default() },
            Self::Config(config) => config.clone(),
        };
        connected!(agent_llm::reranker(name), connection).build()
    }
}
