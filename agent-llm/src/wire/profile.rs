//! Profiles of servers with OpenAI's APIs.

use std::collections::BTreeMap;

use agent_core::{Error, Result, model::Effort};
use http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::endpoint::{endpoint, place};
use crate::{Auth, ResponsesProfile};

/// Profile of a server with OpenAI's APIs: Chat Completions, Responses, or both.
///
/// It is part of a [`Provider`](crate::Provider), whose table contains those of many servers.
///
/// ```
/// use agent_llm::{Auth, Profile};
///
/// let azure = Profile::named("azure")?.with("resource", "acme");
/// assert_eq!(azure.base_url, "https://acme.openai.azure.com/openai/v1");
/// assert_eq!(azure.auth, Auth::Header("api-key".into()));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Profile {
    /// Name of the provider. A provider's own JSON is sent back only to a provider of the same
    /// name. Not part of a profile's JSON: there it is the name of the
    /// [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// Base URL, without `/chat/completions` and `/responses`. It may have placeholders: see
    /// [`with`](Self::with).
    pub base_url: String,
    /// Placement of the key.
    pub auth: Auth,
    /// Role of instructions.
    pub system_role: SystemRole,
    /// Renamed fields of Chat Completions requests: the server's name by OpenAI's original one
    /// (`max_tokens`, `seed`, ..). A field without a name is left out, because the server rejects
    /// it.
    pub names: BTreeMap<String, Option<String>>,
    /// True to request usage at the end of streams (`stream_options`).
    pub include_usage: bool,
    /// True if the server accepts its own extra fields. False for servers that reject in a request
    /// what they sent in an answer; reasoning is still sent back.
    pub verbatim: bool,
    /// True if parts and tools support cache markers (`cache_control`). Other servers cache
    /// automatically, or not at all.
    pub cache_control: bool,
    /// True if the server supports a JSON Schema for the answer. Other servers are asked for any
    /// JSON.
    pub json_schema: bool,
    /// True if it enforces the schema together with tools, without preventing calls: then its
    /// models [report that](agent_core::ModelInfo::json_schema). Many servers reject the
    /// combination, or prevent calls.
    pub json_schema_with_tools: bool,
    /// Fields that request an effort, for each effort that is not a standard value of
    /// `reasoning_effort`.
    pub effort: BTreeMap<Effort, Map<String, Value>>,
    /// Default fields of each Chat Completions request, specific to the server: `safe_prompt` of
    /// Mistral, `provider` of OpenRouter.
    pub fields: Map<String, Value>,
    /// Required length of call ids, in letters and digits. Ids of another form that the server did
    /// not assign are mapped. Default: any.
    pub call_id_length: Option<usize>,
    /// Further restrictions of the server: requests that violate them are repaired before they are
    /// sent. Default: the restrictions of nearly all servers.
    pub dialect: Dialect,
    /// True if the text of an answer may begin with the model's thinking, up to `</think>`: servers
    /// without a reasoning parser leave it there. It becomes reasoning, and is sent back unchanged.
    /// Default: false.
    pub thinking_tags: bool,
    /// Format of documents.
    pub documents: DocumentForm,
    /// True if it supports efforts above `high`. Otherwise `high` is sent instead.
    pub above_high: bool,
    /// Field for the thinking budget in tokens, as a path into nested objects:
    /// `reasoning.max_tokens`. Default: no budget is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<String>,
    /// True if it supports web search by `web_search_options` in Chat Completions.
    pub web_search_options: bool,
    /// Fields that carry the session name, for a model with
    /// [`tell_session`](crate::ModelBuilder::tell_session): in Chat Completions and in Responses.
    pub session_fields: Vec<String>,
    /// Settings of its Responses API. (All other fields about requests concern Chat Completions,
    /// except the role of instructions.)
    pub responses: ResponsesProfile,
}

/// Role of instructions in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`: supported everywhere.
    #[default]
    System,
    /// `developer`: the name in newer OpenAI models.
    Developer,
}

/// Format of a document in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentForm {
    /// As a `file` part, as in OpenAI's API.
    #[default]
    File,
    /// As a `document_url` part, as in Mistral's API: a URL, which may be a data URL.
    Url,
}

/// Restrictions of a server on requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dialect {
    /// Nearly all servers.
    #[default]
    Compatible,
    /// OpenAI: at most 128 tools, short descriptions, ids of at most 40 characters.
    Openai,
    /// Mistral: an answer is required between results and the next user message.
    Mistral,
    /// Moonshot: a message with calls requires `reasoning_content`, unless thinking is disabled.
    Moonshot,
    /// DeepSeek: a message with calls requires `reasoning_content`, unless thinking is disabled.
    Deepseek,
    /// User and assistant messages must alternate.
    Alternating,
    /// As the model's chat template requires: in those of Mistral, Gemma and Llama 2, user and
    /// assistant messages must alternate.
    ChatTemplate,
}

impl SystemRole {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}

impl Profile {
    /// Creates the profile of a compatible server: a bearer token, and only fields that nearly all
    /// servers support.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }

    /// Fills in the placeholder `{name}` of the base URL: the `resource` of Azure, the `account` of
    /// Cloudflare.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.base_url = self.base_url.replace(&format!("{{{name}}}"), value);
        self
    }

    /// Returns the URI of `path` at this server.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is invalid, or has an unset
    /// placeholder.
    pub(crate) fn endpoint(&self, path: &str) -> Result<Uri> {
        let Self { provider, base_url, .. } = self;
        match place(base_url) {
            None => endpoint(base_url, path),
            Some(place) => Err(Error::config(format!(
                "the address of {provider} is {base_url}: use Profile::with(\"{place}\", ..)"
            ))),
        }
    }

    /// Returns the fields that carry the session name.
    pub(crate) fn tell_session(&self, session: &str) -> Map<String, Value> {
        self.session_fields.iter().map(|field| (field.clone(), session.into())).collect()
    }

    /// Returns the effort to send: `High` in place of higher ones that the server does not support.
    pub(crate) fn known(&self, effort: Effort) -> Effort {
        match effort {
            Effort::XHigh | Effort::Max if !self.above_high && !self.effort.contains_key(&effort) => Effort::High,
            effort => effort,
        }
    }

    /// Returns the server's name of the field `usual`; `None` if the server rejects it.
    pub(crate) fn name_of<'a>(&'a self, usual: &'a str) -> Option<&'a str> {
        self.names.get(usual).map_or(Some(usual), Option::as_deref)
    }
}

impl Default for Profile {
    /// A [`compatible`](Self::compatible) server without a name or a URL.
    fn default() -> Self {
        Self {
            provider: String::new(),
            base_url: String::new(),
            auth: Auth::Bearer,
            system_role: SystemRole::System,
            names: BTreeMap::new(),
            include_usage: true,
            verbatim: true,
            cache_control: false,
            json_schema: true,
            json_schema_with_tools: false,
            effort: BTreeMap::new(),
            fields: Map::new(),
            call_id_length: None,
            dialect: Dialect::Compatible,
            thinking_tags: false,
            documents: DocumentForm::File,
            above_high: false,
            thinking_tokens: None,
            web_search_options: false,
            session_fields: vec!["user".into()],
            responses: ResponsesProfile::default(),
        }
    }
}
