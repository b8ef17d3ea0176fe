//! The model that users build: [`OpenAiChat`].

use std::fmt;

use agent_core::{Error, Model, ModelInfo, ModelRequest, ModelResponse, Result, async_trait};

use super::{OpenAiChatCodec, Profile};
use crate::{
    HttpModel,
    model::{HttpSettings, http_setters},
};

/// A model behind OpenAI Chat Completions, on any server that speaks it.
///
/// ```
/// use agent_llm::{OpenAiChat, Profile};
///
/// let hosted = OpenAiChat::builder("gpt-5").api_key("sk-...").build()?;
/// let local = OpenAiChat::builder("llama3.2").profile(Profile::ollama()).build()?;
/// let other = OpenAiChat::builder("m").base_url("http://10.0.0.7:9000/v1").header("x-team", "7").build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct OpenAiChat(HttpModel);

impl OpenAiChat {
    /// Begins a model of this name.
    pub fn builder(model: impl Into<String>) -> OpenAiChatBuilder {
        OpenAiChatBuilder {
            model: model.into(),
            profile: None,
            base_url: None,
            context_window: None,
            tools: true,
            http: HttpSettings::default(),
        }
    }

    /// A model of this name on the server at `OPENAI_BASE_URL` (default: OpenAI), with the key in `OPENAI_API_KEY` or in
    /// the variable of the server's [`Profile`].
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if there is no key and the server is OpenAI, or the address is none.
    pub fn from_env(model: impl Into<String>) -> Result<Self> {
        Self::builder(model).read_env(|name| std::env::var(name).ok())?.build()
    }
}

/// Makes an [`OpenAiChat`].
pub struct OpenAiChatBuilder {
    model: String,
    profile: Option<Profile>,
    base_url: Option<String>,
    context_window: Option<u64>,
    tools: bool,
    http: HttpSettings,
}

impl OpenAiChatBuilder {
    /// Sets the address up to, and without, `/chat/completions`. Default: the profile's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets what is particular to the server. Default: what [`Profile::of_url`] knows of the base URL.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Says how many tokens a request and its answer may have together. Default: what the catalogue knows.
    #[must_use]
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
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
        self.base_url = set("OPENAI_BASE_URL");
        let profile = self.base_url.as_deref().map_or_else(Profile::openai, Profile::of_url);
        match set("OPENAI_API_KEY").or_else(|| set(&profile.key_variable)) {
            Some(key) => Ok(self.api_key(key)),
            None if self.base_url.is_some() => Ok(self), // a local server needs no key
            None => Err(Error::config("OPENAI_API_KEY is not set, nor OPENAI_BASE_URL to use another server")),
        }
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none or a header is one that HTTP does not allow.
    pub fn build(self) -> Result<OpenAiChat> {
        let mut profile = match (self.profile, &self.base_url) {
            (Some(profile), _) => profile,
            (None, Some(url)) => Profile::of_url(url),
            (None, None) => Profile::openai(),
        };
        if let Some(url) = self.base_url {
            profile.base_url = url;
        }
        let auth = profile.auth.clone();
        let mut info = ModelInfo::new(&self.model).with_provider(&profile.provider);
        info.context_window = self.context_window;
        info.tools = self.tools;
        let codec = OpenAiChatCodec::new(self.model, profile)?;
        HttpModel::builder(codec).http(self.http).auth(auth).info(info).build().map(OpenAiChat)
    }
}

#[async_trait]
impl Model for OpenAiChat {
    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        self.0.answer(req).await
    }
}

impl fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAiChat").field(&self.0).finish()
    }
}

impl fmt::Debug for OpenAiChatBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChatBuilder")
            .field("model", &self.model)
            .field("profile", &self.profile)
            .field("base_url", &self.base_url)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &'static [(&str, &str)]) -> Result<OpenAiChatBuilder> {
        OpenAiChat::builder("m").read_env(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn without_a_key_the_error_says_which_variable_is_missing() {
        let error = from(&[]).expect_err("no key");
        assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
        assert!(from(&[("OPENAI_BASE_URL", "http://localhost:11434/v1")]).is_ok());
    }

    #[test]
    fn the_address_in_the_environment_chooses_the_profile() {
        let vars = &[("OPENAI_BASE_URL", "https://openrouter.ai/api/v1/"), ("OPENAI_API_KEY", "a-key-of-mine")];
        let model = from(vars).expect("reads").build().expect("builds");
        assert_eq!(model.info().provider, "openrouter");
    }

    #[test]
    fn a_server_that_is_known_may_have_its_key_in_a_variable_of_its_own() {
        let vars = &[("OPENAI_BASE_URL", "https://api.groq.com/openai/v1"), ("GROQ_API_KEY", "a-key-of-mine")];
        assert!(from(vars).expect("reads").http.api_key.is_some());
    }

    #[test]
    fn neither_model_nor_builder_shows_the_key() {
        let builder = OpenAiChat::builder("m").api_key("canary-key").header("x-secret", "canary-header");
        let shown = format!("{builder:?}") + &format!("{:?}", builder.build().expect("builds"));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
