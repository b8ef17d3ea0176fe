//! What differs between servers that speak OpenAI's APIs.

use std::sync::LazyLock;

use http::Uri;
use serde::{Deserialize, Serialize};

use crate::{Auth, ResponsesProfile};

/// What is particular to one server that speaks OpenAI's APIs: Chat Completions, Responses, or both.
///
/// ```
/// use agent_llm::Profile;
///
/// assert_eq!(Profile::of_url("https://openrouter.ai/api/v1"), Profile::openrouter());
/// let own = Profile::compatible("acme", "https://llm.acme.example/v1");
/// assert_eq!(own.provider, "acme");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Profile {
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name.
    pub provider: String,
    /// The address up to, and without, `/chat/completions` and `/responses`.
    pub base_url: String,
    /// The environment variable that holds the key.
    pub key_variable: String,
    /// How the key is shown.
    pub auth: Auth,
    /// The role of instructions.
    pub system_role: SystemRole,
    /// The field for the most tokens of an answer, in Chat Completions.
    pub max_tokens: MaxTokens,
    /// Whether a streamed answer is asked to end with its usage (`stream_options`), in Chat Completions.
    pub include_usage: bool,
    /// Whether fields of the server's own go back to it, in Chat Completions. False for servers that refuse in a request
    /// what they put in an answer; reasoning still goes back.
    pub verbatim: bool,
    /// What is particular to its Responses.
    pub responses: ResponsesProfile,
}

/// The role of instructions in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`: understood everywhere.
    #[default]
    System,
    /// `developer`: what newer models of OpenAI call it.
    Developer,
}

/// The field that limits an answer's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MaxTokens {
    /// `max_tokens`: understood by nearly all servers.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: what reasoning models of OpenAI insist on.
    MaxCompletionTokens,
}

impl SystemRole {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}

impl Default for Profile {
    /// [`Profile::openai`].
    fn default() -> Self {
        Self::openai()
    }
}

impl Profile {
    /// Any server: the key in `OPENAI_API_KEY`, a bearer token, and only fields that nearly all servers know.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            key_variable: "OPENAI_API_KEY".into(),
            auth: Auth::Bearer,
            system_role: SystemRole::System,
            max_tokens: MaxTokens::MaxTokens,
            include_usage: true,
            verbatim: true,
            responses: ResponsesProfile::default(),
        }
    }

    fn hosted(provider: &str, base_url: &str, key_variable: &str) -> Self {
        Self { key_variable: key_variable.into(), ..Self::compatible(provider, base_url) }
    }

    /// OpenAI.
    pub fn openai() -> Self {
        let base = Self::compatible("openai", "https://api.openai.com/v1");
        Self { max_tokens: MaxTokens::MaxCompletionTokens, ..base }
    }

    /// Azure OpenAI; `resource` is the name before `.openai.azure.com`, and the model is the deployment's name.
    pub fn azure(resource: &str) -> Self {
        let base_url = format!("https://{resource}.openai.azure.com/openai/v1");
        Self {
            auth: Auth::Header("api-key".into()),
            max_tokens: MaxTokens::MaxCompletionTokens,
            ..Self::hosted("azure", &base_url, "AZURE_OPENAI_API_KEY")
        }
    }

    /// OpenRouter.
    pub fn openrouter() -> Self {
        Self::hosted("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")
    }

    /// Groq. It refuses fields that it does not know, some of which its own streams hold.
    pub fn groq() -> Self {
        let base = Self::hosted("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY");
        // It keeps nothing anyway, and refuses the fields that ask for it.
        let responses = ResponsesProfile { stateless: false, ..ResponsesProfile::default() };
        Self { max_tokens: MaxTokens::MaxCompletionTokens, verbatim: false, responses, ..base }
    }

    /// The backend of ChatGPT, which takes the access token of a subscriber; Responses alone. It wants the account's id, too,
    /// in the header `chatgpt-account-id`.
    pub fn chatgpt() -> Self {
        let base = Self::hosted("chatgpt", "https://chatgpt.com/backend-api/codex", "CHATGPT_ACCESS_TOKEN");
        let responses = ResponsesProfile {
            needs_instructions: true,
            always_stream: true,
            refused: ["max_output_tokens", "temperature", "top_p"].map(str::to_owned).into(),
            ..ResponsesProfile::default()
        };
        Self { responses, ..base }
    }

    /// Mistral. Its streams always end with their usage.
    pub fn mistral() -> Self {
        let base = Self::hosted("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY");
        Self { include_usage: false, ..base }
    }

    /// DeepSeek.
    pub fn deepseek() -> Self {
        Self::hosted("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY")
    }

    /// xAI.
    pub fn xai() -> Self {
        Self::hosted("xai", "https://api.x.ai/v1", "XAI_API_KEY")
    }

    /// Ollama on this machine.
    pub fn ollama() -> Self {
        Self::hosted("ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY")
    }

    /// The server of llama.cpp on this machine.
    pub fn llama_cpp() -> Self {
        Self::hosted("llama.cpp", "http://localhost:8080/v1", "LLAMA_API_KEY")
    }

    /// vLLM on this machine.
    pub fn vllm() -> Self {
        Self::hosted("vllm", "http://localhost:8000/v1", "VLLM_API_KEY")
    }

    /// The profile of the server at `base_url`, known by its host and port; else a compatible server named after its host.
    pub fn of_url(base_url: &str) -> Self {
        static KNOWN: LazyLock<Vec<Profile>> = LazyLock::new(|| {
            let hosted = [Profile::openai(), Profile::openrouter(), Profile::groq(), Profile::mistral()];
            let others = [Profile::deepseek(), Profile::xai(), Profile::chatgpt()];
            let local = [Profile::ollama(), Profile::llama_cpp(), Profile::vllm()];
            hosted.into_iter().chain(others).chain(local).collect()
        });
        let authority =
            |url: &str| url.replace("//127.0.0.1", "//localhost").parse::<Uri>().ok()?.into_parts().authority;
        let Some(host) = authority(base_url) else { return Self::compatible("unknown", base_url) };
        if let Some(resource) = host.as_str().strip_suffix(".openai.azure.com") {
            return Self { base_url: base_url.into(), ..Self::azure(resource) };
        }
        match KNOWN.iter().find(|known| authority(&known.base_url).as_ref() == Some(&host)) {
            Some(known) => Self { base_url: base_url.into(), ..known.clone() },
            None => Self::compatible(host.host(), base_url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_host() {
        assert_eq!(Profile::of_url("https://api.openai.com/v1"), Profile::openai());
        assert_eq!(Profile::of_url("http://127.0.0.1:11434/v1").provider, "ollama");
        assert_eq!(Profile::of_url("https://x.openai.azure.com/openai/v1"), Profile::azure("x"));
        let own = Profile::of_url("http://10.0.0.7:9000/v1");
        assert_eq!((own.provider.as_str(), own.max_tokens), ("10.0.0.7", MaxTokens::MaxTokens));
    }

    #[test]
    fn what_a_configuration_leaves_out_is_as_with_openai() {
        let profile: Profile = serde_json::from_str(r#"{"base_url": "http://gateway/v1"}"#).expect("parses");
        assert_eq!(profile, Profile { base_url: "http://gateway/v1".into(), ..Profile::openai() });
    }
}
