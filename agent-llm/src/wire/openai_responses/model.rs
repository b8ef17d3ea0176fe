//! The model that users build: [`OpenAiResponses`].

use agent_core::Result;

use super::OpenAiResponsesCodec;
use crate::{
    HttpModel,
    model::{HttpSettings, http_model, http_setters},
    wire::server::{ServerSettings, server_setters},
};

/// A model behind OpenAI Responses, on any server that speaks it.
///
/// ```
/// use agent_llm::{OpenAiResponses, Profile};
///
/// let hosted = OpenAiResponses::builder("gpt-5").api_key("sk-...").build()?;
/// let local = OpenAiResponses::builder("openai/gpt-oss-20b").profile(Profile::named("vllm")?).build()?;
/// let subscriber = OpenAiResponses::builder("gpt-5.4")
///     .profile(Profile::named("chatgpt")?)
///     .api_key("an access token")
///     .header("chatgpt-account-id", "...")
///     .build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct OpenAiResponses(HttpModel);

impl OpenAiResponses {
    /// Begins a model of this name.
    pub fn builder(model: impl Into<String>) -> OpenAiResponsesBuilder {
        OpenAiResponsesBuilder { server: ServerSettings::new(model.into()), http: HttpSettings::default() }
    }

    /// A model of this name on the server at `OPENAI_BASE_URL` (default: OpenAI), with the key in the variable of
    /// the server's [`Profile`](crate::Profile) or else in `OPENAI_API_KEY`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if there is no key and the server is OpenAI, or the address is none.
    pub fn from_env(model: impl Into<String>) -> Result<Self> {
        let mut builder = Self::builder(model);
        let key = builder.server.read_env(|name| std::env::var(name).ok())?;
        key.into_iter().fold(builder, OpenAiResponsesBuilder::api_key).build()
    }
}

/// Makes an [`OpenAiResponses`].
#[derive(Debug)]
pub struct OpenAiResponsesBuilder {
    server: ServerSettings,
    http: HttpSettings,
}

impl OpenAiResponsesBuilder {
    server_setters!();

    http_setters!();

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none or a header is one that HTTP does not allow.
    pub fn build(self) -> Result<OpenAiResponses> {
        self.server.build(self.http, OpenAiResponsesCodec::new).map(OpenAiResponses)
    }
}

http_model!(OpenAiResponses);
