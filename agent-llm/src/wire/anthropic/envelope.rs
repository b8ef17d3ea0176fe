//! How Claude is asked where a cloud serves it: [`AnthropicEnvelope`].

use agent_core::Result;
use http::Uri;
use serde::{Deserialize, Serialize};

use super::AnthropicProfile;
use crate::{
    Framing,
    wire::endpoint::{endpoint, percent_encoded},
};

/// What is around a message: where it goes, and what is said beside it. The messages themselves are the same everywhere.
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

/// Where whole answers come from, and streamed ones.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub(super) whole: Uri,
    pub(super) streamed: Uri,
}

/// What a request says beside what it asks.
#[derive(Clone, Debug)]
pub(super) struct Head<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) version: Option<&'a str>,
    pub(super) betas: Vec<&'a str>,
    pub(super) stream: Option<bool>,
}

impl AnthropicEnvelope {
    pub(super) fn framing(self) -> Framing {
        match self {
            Self::Bedrock => Framing::AwsEvents,
            Self::Direct | Self::Vertex => Framing::ServerSentEvents,
        }
    }

    /// The headers that say the version and the betas, as far as headers say them.
    pub(super) fn headers(self) -> &'static [&'static str] {
        match self {
            Self::Direct => &["anthropic-version", "anthropic-beta"],
            Self::Vertex => &["anthropic-beta"],
            Self::Bedrock => &[],
        }
    }
}

impl AnthropicProfile {
    /// Where `model` is asked.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none.
    pub(super) fn addresses(&self, model: &str) -> Result<Addresses> {
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
        Ok(Addresses { whole: endpoint(base, &whole)?, streamed: endpoint(base, &streamed)? })
    }

    /// The profile's betas, and those that the request `needs`.
    pub(super) fn betas(&self, needs: &[&'static str]) -> Vec<&str> {
        let own = self.betas.iter().map(String::as_str);
        own.chain(needs.iter().copied().filter(|beta| !self.betas.iter().any(|own| own == beta))).collect()
    }

    /// What a request to `model` says beside what it asks, if it `needs` these betas.
    pub(super) fn head<'a>(&'a self, model: &'a str, stream: bool, needs: &[&'static str]) -> Head<'a> {
        let is_direct = self.envelope == AnthropicEnvelope::Direct;
        let is_bedrock = self.envelope == AnthropicEnvelope::Bedrock;
        Head {
            model: is_direct.then_some(model),
            version: (!is_direct && !self.version.is_empty()).then_some(&*self.version),
            betas: if is_bedrock { self.betas(needs) } else { Vec::new() },
            stream: (stream && !is_bedrock).then_some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{History, Message, ModelRequest, testing::detached_run};
    use serde_json::{Value, json};

    use crate::{AnthropicCodec, Codec, Providers};

    fn asked(provider: &str, model: &str, stream: bool) -> (String, Option<String>, Value) {
        let provider = Providers::builtin().find(provider).expect("is known").clone();
        let provider = provider.with("region", "eu-west-1").with("location", "global").with("project", "p");
        let mut profile = provider.anthropic.expect("it serves Claude");
        profile.betas = vec!["one".into(), "two".into()];
        let codec = AnthropicCodec::new(model, profile).expect("a codec").with_max_tokens(9);
        let history = History::from_messages([Message::user("hi")]).expect("paired");
        let mut request = ModelRequest::new(detached_run(history).cx().clone());
        request.stream = stream;
        let request = codec.encode(&request).expect("a request");
        assert!(!request.headers().contains_key("anthropic-version"), "the body says it");
        let betas = request.headers().get("anthropic-beta").map(|value| value.to_str().expect("a text").to_owned());
        (request.uri().to_string(), betas, serde_json::from_slice(request.body()).expect("JSON"))
    }

    #[test]
    fn bedrock_is_asked_at_the_models_address_with_version_and_betas_in_the_body() {
        let wanted = json!({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["one", "two"], "max_tokens": 9,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]});
        let host = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-opus-4-6-v1%3A0";
        for (stream, path) in [(false, "invoke"), (true, "invoke-with-response-stream")] {
            let (uri, betas, body) = asked("bedrock", "anthropic.claude-opus-4-6-v1:0", stream);
            assert_eq!((uri, betas), (format!("{host}/{path}"), None));
            assert_eq!(body, wanted);
        }
    }

    #[test]
    fn vertex_is_asked_at_the_models_address_with_the_version_in_the_body() {
        let host = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models";
        let message = json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]);
        let (uri, betas, body) = asked("vertex", "claude-opus-4@20250514", false);
        assert_eq!(uri, format!("{host}/claude-opus-4@20250514:rawPredict"));
        assert_eq!(betas.as_deref(), Some("one,two"));
        assert_eq!(body, json!({"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": message}));
        let (uri, _, body) = asked("vertex", "claude-opus-4@20250514", true);
        assert_eq!(uri, format!("{host}/claude-opus-4@20250514:streamRawPredict"));
        assert_eq!(body["stream"], true);
    }
}
