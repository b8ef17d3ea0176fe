//! `openapi`: the operations of an API.

use std::collections::BTreeMap;

use agent_core::Result;
use agent_tools::{ToolSet, openapi::OpenApi};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::{
    file::{FilePath, SecretText, seconds},
    parts::change::Choice,
};

/// The operations of an API, as its OpenAPI document says.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct OpenApiConfig {
    /// The document, in JSON or YAML.
    document: FilePath,
    /// Tags whose operations are offered. Default: all operations, if none is chosen by a tag or its id.
    #[serde(default)]
    tags: Vec<String>,
    /// Ids of operations that are offered.
    #[serde(default)]
    operations: Vec<String>,
    /// Address of the API. Default: the document's first server.
    #[serde(default)]
    server: Option<String>,
    /// Secret of each security scheme, by the scheme's name: a reference, not the secret itself.
    #[serde(default)]
    secrets: BTreeMap<String, SecretText>,
    /// Private addresses to allow.
    #[serde(default)]
    allow_private: Vec<String>,
    /// User agent of requests. Default: this library.
    #[serde(default)]
    user_agent: Option<String>,
    /// Seconds that a call may take.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Most bytes of an answer.
    #[serde(default)]
    max_bytes: Option<usize>,
    #[serde(flatten)]
    choice: Choice,
}

pub(super) fn tools(config: OpenApiConfig) -> Result<ToolSet> {
    let document = crate::config::sources::text_of(config.document.0.as_ref())
        .map_err(|why| agent_core::Error::config(format!("the document '{}' {why}", config.document.0)))?;
    let mut api = OpenApi::builder(document);
    for tag in config.tags {
        api = api.tag(tag);
    }
    for id in config.operations {
        api = api.operation(id);
    }
    if let Some(url) = config.server {
        api = api.server(url);
    }
    for (scheme, SecretText(secret)) in config.secrets {
        api = api.secret(scheme, secret);
    }
    for address in config.allow_private {
        api = api.allow_private(address);
    }
    if let Some(time) = config.timeout {
        api = api.timeout(seconds(time)?);
    }
    if let Some(name) = config.user_agent {
        api = api.user_agent(name);
    }
    if let Some(most) = config.max_bytes {
        api = api.max_bytes(most);
    }
    config.choice.of(api.build()?.tools())
}
