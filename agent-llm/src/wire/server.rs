//! What the builders of models behind OpenAI's APIs have in common.

use agent_core::{Error, ModelInfo, Result};

use crate::{Codec, HttpModel, Profile, model::HttpSettings};

/// What a builder has been told, apart from how requests are sent.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    pub(crate) model: String,
    pub(crate) profile: Option<Profile>,
    pub(crate) base_url: Option<String>,
    pub(crate) context_window: Option<u64>,
    pub(crate) tools: bool,
}

impl ServerSettings {
    pub(crate) fn new(model: String) -> Self {
        Self { model, profile: None, base_url: None, context_window: None, tools: true }
    }

    /// Reads where the server is, and returns its key.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if there is no key and the server is OpenAI.
    pub(crate) fn read_env(&mut self, read: impl Fn(&str) -> Option<String>) -> Result<Option<String>> {
        let set = |name: &str| read(name).filter(|value| !value.trim().is_empty());
        self.base_url = set("OPENAI_BASE_URL");
        let profile = self.base_url.as_deref().map_or_else(Profile::openai, Profile::of_url);
        match set(&profile.key_variable).or_else(|| set("OPENAI_API_KEY")) {
            None if self.base_url.is_none() => {
                Err(Error::config("OPENAI_API_KEY is not set, nor OPENAI_BASE_URL to use another server"))
            }
            key => Ok(key), // a local server needs none
        }
    }

    /// The model, with the codec that `codec` makes for its name and its server.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none or a header is one that HTTP does not allow.
    pub(crate) fn build<C: Codec>(
        self,
        http: HttpSettings,
        codec: impl FnOnce(String, Profile) -> Result<C>,
    ) -> Result<HttpModel> {
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
        info.json_schema = profile.json_schema && profile.json_schema_with_tools;
        HttpModel::builder(codec(self.model, profile)?).http(http).auth(auth).info(info).build()
    }
}

/// The setters of a builder that has [`ServerSettings`] in its field `server`.
macro_rules! server_setters {
    () => {
        /// Sets the address up to, and without, the path of the API. Default: the profile's.
        #[must_use]
        pub fn base_url(mut self, url: impl Into<String>) -> Self {
            self.server.base_url = Some(url.into());
            self
        }

        /// Sets what is particular to the server. Default: what [`Profile::of_url`](crate::Profile::of_url) knows of the
        /// base URL.
        #[must_use]
        pub fn profile(mut self, profile: $crate::Profile) -> Self {
            self.server.profile = Some(profile);
            self
        }

        /// Says how many tokens a request and its answer may have together.
        #[must_use]
        pub fn context_window(mut self, tokens: u64) -> Self {
            self.server.context_window = Some(tokens);
            self
        }

        /// Says that tools cannot be offered to the model.
        #[must_use]
        pub fn without_tools(mut self) -> Self {
            self.server.tools = false;
            self
        }
    };
}
pub(crate) use server_setters;

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &[(&str, &str)]) -> Result<(ServerSettings, Option<String>)> {
        let mut server = ServerSettings::new("m".into());
        let key =
            server.read_env(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))?;
        Ok((server, key))
    }

    #[test]
    fn without_a_key_the_error_says_which_variable_is_missing() {
        let error = from(&[]).expect_err("no key");
        assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
        assert!(from(&[("OPENAI_BASE_URL", "http://localhost:11434/v1")]).is_ok());
    }

    #[test]
    fn a_server_that_is_known_may_have_its_key_in_a_variable_of_its_own() {
        let (_, key) =
            from(&[("OPENAI_BASE_URL", "https://api.groq.com/openai/v1"), ("GROQ_API_KEY", "mine")]).expect("reads");
        assert_eq!(key.as_deref(), Some("mine"));
    }

    #[test]
    fn the_key_of_openai_does_not_go_to_a_server_that_has_a_key_of_its_own() {
        let (groq, openai) = (("GROQ_API_KEY", "groq's"), ("OPENAI_API_KEY", "OpenAI's"));
        let (_, key) = from(&[("OPENAI_BASE_URL", "https://api.groq.com/openai/v1"), openai, groq]).expect("reads");
        assert_eq!(key.as_deref(), Some("groq's"));
        let (_, key) = from(&[openai, groq]).expect("reads");
        assert_eq!(key.as_deref(), Some("OpenAI's"));
        let (_, key) = from(&[("OPENAI_BASE_URL", "http://10.0.0.7:9000/v1"), openai, groq]).expect("reads");
        assert_eq!(key.as_deref(), Some("OpenAI's"), "the two variables are a pair, as with OpenAI's own clients");
    }
}
