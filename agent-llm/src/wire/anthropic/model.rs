//! The model that users build: [`Anthropic`].

use std::fmt;

use agent_core::{Error, ModelInfo, Result};

use super::{AnthropicCodec, AnthropicProfile, ClaudeThinking, claude::MAX_TOKENS};
use crate::{
    Auth, HttpModel,
    model::{HttpSettings, http_model, http_setters},
};

/// A model behind Anthropic Messages: Claude, or another maker's model on a server that speaks the same.
///
/// ```
/// use agent_llm::Anthropic;
///
/// let claude = Anthropic::builder("claude-opus-4-6").api_key("sk-ant-...").build()?;
/// let other = Anthropic::builder("deepseek-chat").base_url("https://api.deepseek.com/anthropic").api_key("..").build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct Anthropic(HttpModel);

impl Anthropic {
    /// Begins a model of this name.
    pub fn builder(model: impl Into<String>) -> AnthropicBuilder {
        AnthropicBuilder {
            model: model.into(),
            profile: None,
            base_url: None,
            betas: Vec::new(),
            context_window: None,
            max_output: None,
            thinking: None,
            tools: true,
            http: HttpSettings::default(),
        }
    }

    /// A model of this name on the server at `ANTHROPIC_BASE_URL` (default: Anthropic), with the key in `ANTHROPIC_API_KEY`,
    /// or the bearer token in `ANTHROPIC_AUTH_TOKEN`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if there is no key and the server is Anthropic, or the address is none.
    pub fn from_env(model: impl Into<String>) -> Result<Self> {
        Self::builder(model).read_env(|name| std::env::var(name).ok())?.build()
    }
}

/// Makes an [`Anthropic`].
pub struct AnthropicBuilder {
    model: String,
    profile: Option<AnthropicProfile>,
    base_url: Option<String>,
    betas: Vec<String>,
    context_window: Option<u64>,
    max_output: Option<u64>,
    thinking: Option<ClaudeThinking>,
    tools: bool,
    http: HttpSettings,
}

impl AnthropicBuilder {
    /// Sets the address up to, and without, `/v1/messages`. Default: the profile's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets what is particular to the server. Default: [`AnthropicProfile::of_url`] of the base URL.
    #[must_use]
    pub fn profile(mut self, profile: AnthropicProfile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Asks for a feature in the header `anthropic-beta`, beside the profile's.
    #[must_use]
    pub fn beta(mut self, feature: impl Into<String>) -> Self {
        self.betas.push(feature.into());
        self
    }

    /// Says how many tokens a request and its answer may have together.
    #[must_use]
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// Says how many tokens an answer may have: the limit of every request that sets none. Default: 32,000, or what the model
    /// can give if that is known to be less.
    #[must_use]
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.max_output = Some(tokens);
        self
    }

    /// Sets how the model is told how much to think. Default: by its name.
    #[must_use]
    pub fn thinking(mut self, thinking: ClaudeThinking) -> Self {
        self.thinking = Some(thinking);
        self
    }

    /// Says that tools cannot be offered to the model.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    http_setters!();

    fn read_env(mut self, read: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name: &str| read(name).filter(|value| !value.trim().is_empty());
        self.base_url = set("ANTHROPIC_BASE_URL");
        let mut profile = self.base_url.as_deref().map_or_else(AnthropicProfile::anthropic, AnthropicProfile::of_url);
        let (key, token) = (set(&profile.key_variable), set("ANTHROPIC_AUTH_TOKEN"));
        if key.is_none() && token.is_some() {
            profile.auth = Auth::Bearer;
        }
        self.profile = Some(profile);
        match key.or(token) {
            Some(key) => Ok(self.api_key(key)),
            None if self.base_url.is_some() => Ok(self), // a local server needs no key
            None => Err(Error::config("ANTHROPIC_API_KEY is not set, nor ANTHROPIC_BASE_URL to use another server")),
        }
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none or a header is one that HTTP does not allow.
    pub fn build(self) -> Result<Anthropic> {
        let mut profile = match (self.profile, &self.base_url) {
            (Some(profile), _) => profile,
            (None, Some(url)) => AnthropicProfile::of_url(url),
            (None, None) => AnthropicProfile::anthropic(),
        };
        if let Some(url) = self.base_url {
            profile.base_url = url;
        }
        profile.betas.extend(self.betas);
        let auth = profile.auth.clone();
        let mut info = ModelInfo::new(&self.model).with_provider(&profile.provider);
        info.context_window = self.context_window;
        info.max_output = self.max_output;
        info.tools = self.tools;
        info.json_schema = profile.json_schema;
        let known = self.http.catalogue.complete(info.clone()).max_output;
        let mut codec = AnthropicCodec::new(self.model, profile)?;
        if let Some(tokens) = self.max_output.or(known.map(|most| most.min(MAX_TOKENS))) {
            codec = codec.with_max_tokens(tokens);
        }
        if let Some(thinking) = self.thinking {
            codec = codec.with_thinking(thinking);
        }
        HttpModel::builder(codec).http(self.http).auth(auth).info(info).build().map(Anthropic)
    }
}

http_model!(Anthropic);

impl fmt::Debug for AnthropicBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicBuilder")
            .field("model", &self.model)
            .field("profile", &self.profile)
            .field("base_url", &self.base_url)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use agent_core::Model;

    use super::*;

    fn from(vars: &'static [(&str, &str)]) -> Result<AnthropicBuilder> {
        Anthropic::builder("m").read_env(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn without_a_key_the_error_says_which_variable_is_missing() {
        let error = from(&[]).expect_err("no key");
        assert!(error.message().contains("ANTHROPIC_API_KEY"), "{error}");
        assert!(from(&[("ANTHROPIC_BASE_URL", "http://localhost:4000")]).is_ok());
    }

    #[test]
    fn a_token_is_shown_as_a_bearer_and_a_key_in_its_own_header() {
        let auth = |vars| from(vars).expect("reads").profile.expect("a profile").auth;
        assert_eq!(auth(&[("ANTHROPIC_AUTH_TOKEN", "a-token-of-mine")]), Auth::Bearer);
        let both = &[("ANTHROPIC_AUTH_TOKEN", "a-token-of-mine"), ("ANTHROPIC_API_KEY", "a-key-of-mine")];
        assert_eq!(auth(both), Auth::Header("x-api-key".into()));
    }

    #[test]
    fn the_address_in_the_environment_names_the_provider() {
        let vars = &[("ANTHROPIC_BASE_URL", "https://openrouter.ai/api"), ("ANTHROPIC_API_KEY", "a-key-of-mine")];
        let model = from(vars).expect("reads").build().expect("builds");
        assert_eq!(model.info().provider, "openrouter.ai");
    }
}
