//! What differs between servers that speak Converse.

use serde::{Deserialize, Serialize};

use crate::Auth;

/// What is particular to one server that speaks Amazon Bedrock's Converse: Bedrock itself, or a gateway to it.
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
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name. It is no
    /// part of the JSON of a profile: there it is the name of the [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// The address up to, and without, `/model/..`.
    pub base_url: String,
    /// How requests are signed.
    pub auth: Auth,
    /// Whether models are held to a JSON Schema: then they [say so](agent_core::ModelInfo::json_schema). Not all that Bedrock
    /// serves are. Default: false.
    pub json_schema: bool,
}

impl BedrockProfile {
    /// A server that is shown a bearer token, with no word of schemas.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }
}
