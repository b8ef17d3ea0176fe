//! The model that users build: [`Gemini`].

use std::fmt;

use agent_core::{Error, ModelInfo, Result};
use http::Uri;

use super::{GeminiCodec, GeminiProfile};
use crate::{
    HttpModel,
    model::{HttpSettings, http_model, http_setters},
};

/// A model behind Gemini's `generateContent`: of the Gemini API, of Vertex AI, or of a proxy.
///
/// ```
/// use agent_llm::{Gemini, GeminiProfile};
///
/// let hosted = Gemini::builder("gemini-2.5-flash").api_key("AIza...").build()?;
/// let vertex = GeminiProfile::vertex("my-project", "global");
/// let vertex = Gemini::builder("gemini-2.5-pro").profile(vertex).api_key("ya29...").build()?;
/// let other = Gemini::builder("m").base_url("http://10.0.0.7:9000/v1beta").header("x-team", "7").build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct Gemini(HttpModel);

impl Gemini {
    /// Begins a model of this name.
    pub fn builder(model: impl Into<String>) -> GeminiBuilder {
        GeminiBuilder {
            model: model.into(),
            profile: GeminiProfile::ai_studio(),
            base_url: None,
            context_window: None,
            tools: true,
            http: HttpSettings::default(),
        }
    }

    /// A model of this name as the environment says, in the variables of Google's own clients:
    ///
    /// * with `GOOGLE_GENAI_USE_VERTEXAI=true`, on Vertex AI in `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION`
    ///   (default: `global`), with the access token in `GOOGLE_OAUTH_ACCESS_TOKEN`;
    /// * otherwise on the server at `GOOGLE_GEMINI_BASE_URL` (default: the Gemini API), with the key in `GEMINI_API_KEY` or
    ///   `GOOGLE_API_KEY`. A base URL without a path is that of a server whose API is below `/v1beta`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if a variable that is needed is not set, or the address is none.
    pub fn from_env(model: impl Into<String>) -> Result<Self> {
        Self::builder(model).read_env(|name| std::env::var(name).ok())?.build()
    }
}

/// Makes a [`Gemini`].
pub struct GeminiBuilder {
    model: String,
    profile: GeminiProfile,
    base_url: Option<String>,
    context_window: Option<u64>,
    tools: bool,
    http: HttpSettings,
}

impl GeminiBuilder {
    /// Sets the address up to, and without, `/models/MODEL:generateContent`. Default: the profile's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets what is particular to the server. Default: [`GeminiProfile::ai_studio`].
    #[must_use]
    pub fn profile(mut self, profile: GeminiProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Says how many tokens a request and its answer may have together.
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
        let need = |name: &str| set(name).ok_or_else(|| Error::config(format!("{name} is not set")));
        let on_vertex = set("GOOGLE_GENAI_USE_VERTEXAI").is_some_and(|v| matches!(&*v.to_lowercase(), "true" | "1"));
        if on_vertex {
            let location = set("GOOGLE_CLOUD_LOCATION").unwrap_or_else(|| "global".into());
            self.profile = GeminiProfile::vertex(&need("GOOGLE_CLOUD_PROJECT")?, &location);
            let token = need(&self.profile.key_variable)?;
            return Ok(self.api_key(token));
        }
        if let Some(url) = set("GOOGLE_GEMINI_BASE_URL") {
            let uri: Option<Uri> = url.parse().ok();
            let host = uri.as_ref().and_then(Uri::host).unwrap_or("unknown").to_owned();
            let is_bare = uri.as_ref().is_some_and(|uri| matches!(uri.path(), "" | "/"));
            let url = if is_bare { format!("{}/v1beta", url.trim_end_matches('/')) } else { url };
            self.profile = GeminiProfile::compatible(host, url);
            let key = set("GEMINI_API_KEY").or_else(|| set("GOOGLE_API_KEY"));
            return Ok(match key {
                Some(key) => self.api_key(key),
                None => self, // a proxy may have the key itself
            });
        }
        let key = set("GEMINI_API_KEY").or_else(|| set("GOOGLE_API_KEY"));
        key.map(|key| self.api_key(key)).ok_or_else(|| {
            Error::config("GEMINI_API_KEY is not set, nor GOOGLE_GEMINI_BASE_URL or GOOGLE_GENAI_USE_VERTEXAI")
        })
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none or a header is one that HTTP does not allow.
    pub fn build(self) -> Result<Gemini> {
        let mut profile = self.profile;
        if let Some(url) = self.base_url {
            profile.base_url = url;
        }
        let auth = profile.auth.clone();
        let mut info = ModelInfo::new(&self.model).with_provider(&profile.provider);
        info.context_window = self.context_window;
        info.tools = self.tools;
        info.json_schema = profile.holds_to_schemas(&self.model);
        let codec = GeminiCodec::new(self.model, profile)?;
        HttpModel::builder(codec).http(self.http).auth(auth).info(info).build().map(Gemini)
    }
}

http_model!(Gemini);

impl fmt::Debug for GeminiBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeminiBuilder")
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

    fn from(vars: &'static [(&str, &str)]) -> Result<GeminiBuilder> {
        Gemini::builder("m").read_env(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn without_a_key_the_error_says_which_variable_is_missing() {
        let error = from(&[]).expect_err("no key");
        assert!(error.message().contains("GEMINI_API_KEY"), "{error}");
        let error = from(&[("GOOGLE_GENAI_USE_VERTEXAI", "true")]).expect_err("no project");
        assert!(error.message().contains("GOOGLE_CLOUD_PROJECT"), "{error}");
        assert!(from(&[("GOOGLE_API_KEY", "a-key-of-mine")]).expect("reads").http.api_key.is_some());
    }

    #[test]
    fn the_environment_chooses_vertex() {
        let vars = &[
            ("GOOGLE_GENAI_USE_VERTEXAI", "True"),
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "a-token-of-mine"),
            ("GEMINI_API_KEY", "another"),
        ];
        let builder = from(vars).expect("reads");
        assert_eq!(builder.profile, GeminiProfile::vertex("p", "global"));
        assert_eq!(builder.build().expect("builds").info().provider, "vertex");
    }

    #[test]
    fn a_proxy_is_named_after_its_host_and_needs_no_key() {
        let profile = |vars| from(vars).expect("reads").profile;
        let bare = profile(&[("GOOGLE_GEMINI_BASE_URL", "http://localhost:4000/")]);
        assert_eq!((bare.provider.as_str(), bare.base_url.as_str()), ("localhost", "http://localhost:4000/v1beta"));
        let whole = profile(&[("GOOGLE_GEMINI_BASE_URL", "http://proxy.test/gemini/v1")]);
        assert_eq!(whole.base_url, "http://proxy.test/gemini/v1");
    }
}
