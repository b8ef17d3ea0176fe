//! What differs between servers that speak Anthropic Messages.

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

/// How Claude is asked where a cloud serves it: what is around a message, where it goes, and what is said beside it. The
/// messages themselves are the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnthropicEnvelope {
    /// Anthropic's own: the address is `/v1/messages`, the body names the model, and the version stands in a header.
    #[default]
    Direct,
    /// `InvokeModel` of Amazon Bedrock: the address names the model and says whether the answer is streamed, the body has the
    /// version and the betas, and a stream is one of AWS's event streams.
    Bedrock,
    /// Google's Vertex AI: the address names the model and says whether the answer is streamed, and the body has the version.
    Vertex,
}

/// The header, or the field, that asks for what is not yet for all.
const BETAS: &str = "anthropic-beta";

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

    /// Where `model` is asked for whole answers, and for streamed ones.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none.
    pub(super) fn addresses(&self, model: &str) -> Result<(Uri, Uri)> {
        let base = self.base_url.trim_end_matches('/');
        let (base, whole, streamed) = match self.envelope {
            // Some write the version of the path, others do not.
            AnthropicEnvelope::Direct => {
                let path = "/v1/messages".to_owned();
                (base.strip_suffix("/v1").unwrap_or(base), path.clone(), path)
            }
            AnthropicEnvelope::Bedrock => {
                let model = format!("/model/{}", percent_encoded(model));
                (base, format!("{model}/invoke"), format!("{model}/invoke-with-response-stream"))
            }
            AnthropicEnvelope::Vertex => {
                // The `@` before a date stands as it is.
                let model = format!("/models/{}", percent_encoded(model).replace("%40", "@"));
                (base, format!("{model}:rawPredict"), format!("{model}:streamRawPredict"))
            }
        };
        Ok((endpoint(base, &whole)?, endpoint(base, &streamed)?))
    }

    /// The headers that say the version and the betas, as far as headers say them, if a request `needs` these betas.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for what no header can hold.
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

    /// The fields with which a request to `model` begins, if it `needs` these betas.
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

    /// The profile's betas, and those that a request `needs`.
    fn betas(&self, needs: &[&'static str]) -> Vec<&str> {
        let own = self.betas.iter().map(String::as_str);
        own.chain(needs.iter().copied().filter(|beta| !self.betas.iter().any(|own| own == beta))).collect()
    }
}
