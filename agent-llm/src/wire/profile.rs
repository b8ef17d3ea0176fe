//! What differs between servers that speak OpenAI's APIs.

use std::collections::BTreeMap;

use agent_core::{Error, Result, model::Effort};
use http::Uri;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::endpoint::{endpoint, place};
use crate::{Auth, ResponsesProfile};

/// What is particular to one server that speaks OpenAI's APIs: Chat Completions, Responses, or both.
///
/// It is a part of a [`Provider`](crate::Provider), whose table has those of many servers.
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
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name. It is no
    /// part of the JSON of a profile: there it is the name of the [`Provider`](crate::Provider).
    #[serde(skip)]
    pub provider: String,
    /// The address up to, and without, `/chat/completions` and `/responses`. May have places to be filled in: see [`with`](Self::with).
    pub base_url: String,
    /// How the key is shown.
    pub auth: Auth,
    /// The role of instructions.
    pub system_role: SystemRole,
    /// Fields of a request for Chat Completions that this server calls otherwise than OpenAI once did (`max_tokens`,
    /// `seed`, ..): its own name by the usual one. A field without a name is left out: the server refuses it.
    pub names: BTreeMap<String, Option<String>>,
    /// Whether a streamed answer is asked to end with its usage (`stream_options`).
    pub include_usage: bool,
    /// Whether fields of the server's own go back to it. False for servers that refuse in a request what they put in an
    /// answer; reasoning still goes back.
    pub verbatim: bool,
    /// Whether parts and tools may be marked for the cache with `cache_control`. Others cache by themselves, or not at all.
    pub cache_control: bool,
    /// Whether the server takes a JSON Schema of the answer. One that does not is asked for any JSON.
    pub json_schema: bool,
    /// Whether it holds a model to the schema beside tools, and lets it call them: then its models
    /// [say so](agent_core::ModelInfo::json_schema). Many servers refuse the two together, or let no tool be called.
    pub json_schema_with_tools: bool,
    /// The fields that ask for an effort, for each that is not `reasoning_effort` in the usual words.
    pub effort: BTreeMap<Effort, Map<String, Value>>,
    /// Fields of the server's own that each request for Chat Completions has, if it says nothing else of them: `safe_prompt` of
    /// Mistral, `provider` of OpenRouter.
    pub fields: Map<String, Value>,
    /// The only length that ids of calls may have, in letters and digits. Ids of another form that the server did not make are
    /// mapped to such ones. Default: any.
    pub call_id_length: Option<usize>,
    /// How documents are written.
    pub documents: DocumentForm,
    /// Whether it knows efforts above `high`. One that does not is asked for that.
    pub above_high: bool,
    /// The field in which it takes the most tokens that a model may think, and its place in others: `reasoning.max_tokens`.
    /// Default: it is told no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<String>,
    /// Whether it searches the web where Chat Completions say `web_search_options`.
    pub web_search_options: bool,
    /// The fields of a request in which the server takes a name of the session, of a model that
    /// [tells it](crate::ModelBuilder::tell_session): for Chat Completions and for Responses.
    pub session_fields: Vec<String>,
    /// What is particular to its Responses. (All other fields that are no facts of the server itself are about Chat
    /// Completions, the role of instructions excepted.)
    pub responses: ResponsesProfile,
}

/// The role of instructions in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`: understood everywhere.
    #[default]
    System,
    /// `developer`: what newer models of OpenAI call it.
    Developer,
}

/// How a document is written in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentForm {
    /// As a part `file`, as OpenAI's.
    #[default]
    File,
    /// As a part `document_url`, as Mistral's: the document's address, or its bytes in one.
    Url,
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
    /// Any server: a bearer token, and only fields that nearly all servers know.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }

    /// Fills in the place `{name}` of the base URL: the `resource` of Azure, the `account` of Cloudflare.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.base_url = self.base_url.replace(&format!("{{{name}}}"), value);
        self
    }

    /// The address of `path` at this server.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) if the base URL is none, or has a place that is not filled in.
    pub(crate) fn endpoint(&self, path: &str) -> Result<Uri> {
        let Self { provider, base_url, .. } = self;
        match place(base_url) {
            None => endpoint(base_url, path),
            Some(place) => Err(Error::config(format!(
                "the address of {provider} is {base_url}: use Profile::with(\"{place}\", ..)"
            ))),
        }
    }

    /// The fields that tell the server of the session.
    pub(crate) fn tell_session(&self, session: &str) -> Map<String, Value> {
        self.session_fields.iter().map(|field| (field.clone(), session.into())).collect()
    }

    /// The effort to ask the server for, in place of one that it does not know.
    pub(crate) fn known(&self, effort: Effort) -> Effort {
        match effort {
            Effort::XHigh | Effort::Max if !self.above_high && !self.effort.contains_key(&effort) => Effort::High,
            effort => effort,
        }
    }

    /// What the server calls the field `usual`; none if it refuses it.
    pub(crate) fn name_of<'a>(&'a self, usual: &'a str) -> Option<&'a str> {
        self.names.get(usual).map_or(Some(usual), Option::as_deref)
    }
}

impl Default for Profile {
    /// A [`compatible`](Self::compatible) server without a name or an address.
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
            documents: DocumentForm::File,
            above_high: false,
            thinking_tokens: None,
            web_search_options: false,
            session_fields: vec!["user".into()],
            responses: ResponsesProfile::default(),
        }
    }
}
