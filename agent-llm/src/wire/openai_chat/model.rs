//! The model that users build: [`OpenAiChat`].

use agent_core::Result;

use super::OpenAiChatCodec;
use crate::{
    HttpModel,
    model::{HttpSettings, http_model, http_setters},
    wire::server::{ServerSettings, server_setters},
};

/// A model behind OpenAI Chat Completions, on any server that speaks it.
///
/// ```
/// use agent_llm::{OpenAiChat, Profile};
///
/// let hosted = OpenAiChat::builder("gpt-5").api_key("sk-...").build()?;
/// let local = OpenAiChat::builder("llama3.2").profile(Profile::named("ollama")?).build()?;
/// let other = OpenAiChat::builder("m").base_url("http://10.0.0.7:9000/v1").header("x-team", "7").build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct OpenAiChat(HttpModel);

impl OpenAiChat {
    /// Begins a model of this name.
    pub fn builder(model: impl Into<String>) -> OpenAiChatBuilder {
        OpenAiChatBuilder { server: ServerSettings::new(model.into()), http: HttpSettings::default() }
    }

    /// A model of this name on the server at `OPENAI_BASE_URL` (default: OpenAI), with the key in the variable of
    /// the server's [`Profile`](crate::Profile) or else in `OPENAI_API_KEY`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if there is no key and the server is OpenAI, or the address is none.
    pub fn from_env(model: impl Into<String>) -> Result<Self> {
        Self::builder(model).read_env(|name| std::env::var(name).ok())?.build()
    }
}

/// Makes an [`OpenAiChat`].
#[derive(Debug)]
pub struct OpenAiChatBuilder {
    server: ServerSettings,
    http: HttpSettings,
}

impl OpenAiChatBuilder {
    server_setters!();

    http_setters!();

    fn read_env(mut self, read: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let key = self.server.read_env(read)?;
        Ok(key.into_iter().fold(self, Self::api_key))
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none or a header is one that HTTP does not allow.
    pub fn build(self) -> Result<OpenAiChat> {
        self.server.build(self.http, OpenAiChatCodec::new).map(OpenAiChat)
    }
}

http_model!(OpenAiChat);

#[cfg(test)]
mod tests {
    use agent_core::Model;

    use super::*;

    #[test]
    fn the_address_in_the_environment_chooses_the_profile() {
        let read = |name: &str| match name {
            "OPENAI_BASE_URL" => Some("https://openrouter.ai/api/v1/".to_owned()),
            "OPENAI_API_KEY" => Some("a-key-of-mine".to_owned()),
            _ => None,
        };
        let builder = OpenAiChat::builder("m").read_env(read).expect("reads");
        assert!(builder.http.api_key.is_some());
        assert_eq!(builder.build().expect("builds").info().provider, "openrouter");
    }
}
