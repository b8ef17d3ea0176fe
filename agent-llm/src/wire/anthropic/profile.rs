//! What differs between servers that speak Anthropic Messages.

use http::Uri;
use serde::{Deserialize, Serialize};

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
#[serde(default)]
#[non_exhaustive]
pub struct AnthropicProfile {
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name.
    pub provider: String,
    /// The address up to, and without, `/v1/messages`.
    pub base_url: String,
    /// The environment variable that holds the key.
    pub key_variable: String,
    /// How the key is shown.
    pub auth: Auth,
    /// The version of the API, for the header `anthropic-version`; empty to send none.
    pub version: String,
    /// Features that are asked for in the header `anthropic-beta`: files by id, for example, need `files-api-2025-04-14`.
    pub betas: Vec<String>,
    /// Whether the server holds models to a JSON Schema: then they [say so](agent_core::ModelInfo::json_schema).
    pub json_schema: bool,
}

impl Default for AnthropicProfile {
    /// [`AnthropicProfile::anthropic`].
    fn default() -> Self {
        Self::anthropic()
    }
}

impl AnthropicProfile {
    /// Anthropic.
    pub fn anthropic() -> Self {
        Self { json_schema: true, ..Self::compatible("anthropic", "https://api.anthropic.com") }
    }

    /// Any server: the key in `ANTHROPIC_API_KEY`, shown in `x-api-key`, no betas, and no word of schemas.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            key_variable: "ANTHROPIC_API_KEY".into(),
            auth: Auth::Header("x-api-key".into()),
            version: "2023-06-01".into(),
            betas: Vec::new(),
            json_schema: false,
        }
    }

    /// The profile of the server at `base_url`: Anthropic's if the host is, else a compatible server named after its host.
    pub fn of_url(base_url: &str) -> Self {
        let host = base_url.parse::<Uri>().ok().and_then(|uri| Some(uri.host()?.to_owned()));
        match host.as_deref() {
            Some("api.anthropic.com") => Self { base_url: base_url.into(), ..Self::anthropic() },
            Some(host) => Self::compatible(host, base_url),
            None => Self::compatible("unknown", base_url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_after_its_host() {
        assert_eq!(AnthropicProfile::of_url("https://api.anthropic.com"), AnthropicProfile::anthropic());
        assert_eq!(AnthropicProfile::of_url("https://api.deepseek.com/anthropic").provider, "api.deepseek.com");
        assert_eq!(AnthropicProfile::of_url("/v1").provider, "unknown");
    }

    #[test]
    fn what_a_configuration_leaves_out_is_as_with_anthropic() {
        let json = r#"{"base_url": "http://gateway", "auth": "bearer"}"#;
        let profile: AnthropicProfile = serde_json::from_str(json).expect("parses");
        let wanted =
            AnthropicProfile { base_url: "http://gateway".into(), auth: Auth::Bearer, ..AnthropicProfile::anthropic() };
        assert_eq!(profile, wanted);
    }
}
