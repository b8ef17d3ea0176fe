//! Profiles of servers with the Converse API.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// Profile of a server with Amazon Bedrock's Converse API: Bedrock itself, or a gateway to it.
///
/// ```
/// use agent_llm::{Auth, BedrockProfile};
///
/// let gateway = BedrockProfile::compatible("gateway", "https://llm.example/bedrock");
/// assert_eq!((gateway.auth, gateway.json_schema), (Auth::Bearer, false));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BedrockProfile {
    /// Name of the provider. A provider's own JSON is sent back only to a provider of the same
    /// name. Not part of a profile's JSON: there it is the name of the
    /// [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// Base URL, without `/model/..`.
    pub base_url: String,
    /// Authentication of requests.
    pub auth: Auth,
    /// True if JSON Schemas are enforced, which models then
    /// [report](agent_core::ModelInfo::json_schema). Not all models on Bedrock support them.
    /// Default: false.
    pub json_schema: bool,
}

impl BedrockProfile {
    /// Creates the profile of a compatible server, with a bearer token and without JSON Schemas.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }
}
