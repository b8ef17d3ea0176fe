//! What differs between servers that speak Anthropic Messages.

use serde::{Deserialize, Serialize};

use super::{AnthropicEnvelope, ClaudeThinking};
use crate::Auth;

/// What is particular to one server that speaks Anthropic Messages: Anthropic itself, a gateway, or another maker's models
/// behind the same protocol.
///
/// ```
/// use agent_llm::{AnthropicProfile, Auth};
///
/// let mut gateway = AnthropicProfile::compatible("gateway", "https://llm.example/anthropic");
/// gateway.auth = Auth::Bearer;
/// gateway.betas.push("context-1m-2025-08-07".into());
/// assert_eq!(gateway.version, "2023-06-01");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AnthropicProfile {
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name. It is no
    /// part of the JSON of a profile: there it is the name of the [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// The address up to, and without, `/v1/messages`; for other envelopes, `/model/..` of Bedrock and `/models/..` of Vertex.
    pub base_url: String,
    /// How the key is shown.
    pub auth: Auth,
    /// Around what a request is put. Default: [`Direct`](AnthropicEnvelope::Direct).
    pub envelope: AnthropicEnvelope,
    /// The version of the API, for the header `anthropic-version` or the field of that name; empty to send none.
    pub version: String,
    /// Features that are asked for in the header or the field `anthropic-beta`: files by id, for example, need `files-api-2025-04-14`.
    pub betas: Vec<String>,
    /// Whether the server holds models to a JSON Schema: then they [say so](agent_core::ModelInfo::json_schema).
    pub json_schema: bool,
    /// How models are told how much to think. Default: by their names.
    pub thinking: Option<ClaudeThinking>,
}

impl Default for AnthropicProfile {
    /// A [`compatible`](Self::compatible) server without a name or an address.
    fn default() -> Self {
        Self::compatible("", "")
    }
}

impl AnthropicProfile {
    /// Any server: the key in `x-api-key`, no betas, and no word of schemas.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            auth: Auth::Header("x-api-key".into()),
            envelope: AnthropicEnvelope::Direct,
            version: "2023-06-01".into(),
            betas: Vec::new(),
            json_schema: false,
            thinking: None,
        }
    }
}
