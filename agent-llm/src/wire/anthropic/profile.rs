//! Profiles of servers with the Anthropic Messages API.

use agent_core::{Error, Result};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde::{Deserialize, Serialize};

use crate::{
    Auth,
    wire::{
        claude::ClaudeThinking,
        endpoint::{endpoint, percent_encoded},
        fields::Fields,
    },
};

/// Profile of a server with the Anthropic Messages API: Anthropic itself, a gateway, or another
/// vendor's models behind the same protocol.
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
    /// Name of the provider. A provider's own JSON is sent back only to a provider of the same
    /// name. Not part of a profile's JSON: there it is the name of the
    /// [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// Base URL, without `/v1/messages`; for other envelopes, without `/model/..` of Bedrock or
    /// `/models/..` of Vertex.
    pub base_url: String,
    /// Placement of the key.
    pub auth: Auth,
    /// Envelope of requests. Default: [`Direct`](AnthropicEnvelope::Direct).
    pub envelope: AnthropicEnvelope,
    /// API version, for the header `anthropic-version` or the field of that name; empty to send
    /// none.
    pub version: String,
    /// Beta features requested in the header or the field `anthropic-beta`: files by id, for
    /// example, need `files-api-2025-04-14`.
    pub betas: Vec<String>,
    /// True if the server enforces JSON Schemas, which its models then
    /// [report](agent_core::ModelInfo::json_schema).
    pub json_schema: bool,
    /// Thinking parameter of the models. Default: by their names.
    pub thinking: Option<ClaudeThinking>,
}

/// Envelope of a request on a cloud platform: URL and additional fields. The messages themselves
/// are the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnthropicEnvelope {
    /// Anthropic's own API: the path is `/v1/messages`, the body names the model, and a header
    /// contains the version.
    #[default]
    Direct,
    /// `InvokeModel` of Amazon Bedrock: the URL contains the model and whether the answer is
    /// streamed, the body contains the version and the betas, and a stream is an AWS event stream.
    Bedrock,
    /// Google's Vertex AI: the URL contains the model and whether the answer is streamed, and the
    /// body contains the version.
    Vertex,
}

/// Header or field that requests beta features.
const BETAS: &str = "anthropic-beta";

impl Default for AnthropicProfile {
    /// A [`compatible`](Self::compatible) server without a name or a URL.
    fn default() -> Self {
        Self::compatible("", "")
    }
}

impl AnthropicProfile {
    /// Creates the profile of a compatible server: the key in `x-api-key`, no betas, and no JSON
    /// Schemas.
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

    /// Returns the URIs for whole and for streamed answers of `model`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is invalid.
    pub(super) fn addresses(&self, model: &str) -> Result<(Uri, Uri)> {
        let base = self.base_url.trim_end_matches('/');
        let (base, whole, streamed) = match self.envelope {
            // Base URLs are in use with and without the API version.
            AnthropicEnvelope::Direct => {
                let path = "/v1/messages".to_owned();
                (base.strip_suffix("/v1").unwrap_or(base), path.clone(), path)
            }
            AnthropicEnvelope::Bedrock => {
                let model = format!("/model/{}", percent_encoded(model));
                (base, format!("{model}/invoke"), format!("{model}/invoke-with-response-stream"))
            }
            AnthropicEnvelope::Vertex => {
                // The `@` before a date must not be encoded.
                let model = format!("/models/{}", percent_encoded(model).replace("%40", "@"));
                (base, format!("{model}:rawPredict"), format!("{model}:streamRawPredict"))
            }
        };
        Ok((endpoint(base, &whole)?, endpoint(base, &streamed)?))
    }

    /// Returns the headers with the version and the betas, including those that a request `needs`,
    /// if the envelope uses headers.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for values that are not valid in a header.
    pub(super) fn headers(&self, needs: &[&'static str]) -> Result<HeaderMap> {
        let (version, betas) = (self.version.clone(), self.betas(needs).join(","));
        let said = match self.envelope {
            AnthropicEnvelope::Direct => vec![("anthropic-version", version), (BETAS, betas)],
            AnthropicEnvelope::Vertex => vec![(BETAS, betas)],
            AnthropicEnvelope::Bedrock => Vec::new(),
        };
        let header = |(name, value): (&'static str, String)| {
            let unsayable = |_| Error::config(format!("'{value}' cannot stand in the header '{name}'"));
            Ok((HeaderName::from_static(name), HeaderValue::try_from(&value).map_err(unsayable)?))
        };
        said.into_iter().filter(|(_, value)| !value.is_empty()).map(header).collect()
    }

    /// Returns the first fields of a request to `model` that `needs` these betas.
    pub(super) fn head(&self, model: &str, needs: &[&'static str]) -> Fields<'static> {
        let mut head = Fields::default();
        match self.envelope {
            AnthropicEnvelope::Direct => head.say("model", Some(model)),
            _ => head.say("anthropic_version", Some(&self.version).filter(|version| !version.is_empty())),
        }
        if self.envelope == AnthropicEnvelope::Bedrock {
            head.say("anthropic_beta", Some(self.betas(needs)).filter(|betas| !betas.is_empty()));
        }
        head
    }

    /// Returns the profile's betas, and those that a request `needs`.
    fn betas(&self, needs: &[&'static str]) -> Vec<&str> {
        let own = self.betas.iter().map(String::as_str);
        own.chain(needs.iter().copied().filter(|beta| !self.betas.iter().any(|own| own == beta))).collect()
    }
}
