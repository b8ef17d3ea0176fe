//! What differs between servers that speak OpenAI's APIs: data, and how it is found.

use std::{collections::BTreeMap, sync::LazyLock};

use agent_core::{Error, Result, model::Effort};
use http::Uri;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use super::{endpoint::endpoint, json::lay};
use crate::{Auth, ResponsesProfile};

/// The profiles that come with this crate.
static KNOWN: LazyLock<Vec<Profile>> =
    LazyLock::new(|| serde_json::from_str(include_str!("profiles.json")).expect("a test reads it"));

/// What is particular to one server that speaks OpenAI's APIs: Chat Completions, Responses, or both.
///
/// Those of many servers are known by [name](Self::named) and by [address](Self::of_url). Another is written down in code,
/// or in a configuration: what that leaves out is as with a [`compatible`](Self::compatible) server, or as with the
/// one that it is `like`.
///
/// ```
/// use agent_llm::Profile;
///
/// assert_eq!(Profile::of_url("https://openrouter.ai/api/v1"), Profile::named("openrouter")?);
/// let azure = Profile::named("azure")?.with("resource", "acme");
/// assert_eq!(azure.base_url, "https://acme.openai.azure.com/openai/v1");
///
/// let own = r#"{"like": "groq", "provider": "proxy", "base_url": "http://proxy.test/v1", "cache_control": true}"#;
/// let own: Profile = serde_json::from_str(own)?;
/// assert_eq!((own.provider.as_str(), own.verbatim), ("proxy", false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
#[non_exhaustive]
pub struct Profile {
    /// Who serves the models. What a provider sent goes back, in its own JSON, only to a provider of the same name.
    pub provider: String,
    /// The address up to, and without, `/chat/completions` and `/responses`. May have places to be filled in: see [`with`](Self::with).
    pub base_url: String,
    /// The environment variable that holds the key.
    pub key_variable: String,
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
    /// The fields of a request in which the server takes a name of the session, of a model that
    /// [tells it](crate::OpenAiChatBuilder::tell_session): for Chat Completions and for Responses.
    pub session_fields: Vec<String>,
    /// What is particular to its Responses. (All other fields that are no facts of the server itself are about Chat
    /// Completions, the role of instructions excepted.)
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

impl SystemRole {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}

impl Profile {
    /// Any server: the key in `OPENAI_API_KEY`, a bearer token, and only fields that nearly all servers know.
    pub fn compatible(provider: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self { provider: provider.into(), base_url: base_url.into(), ..Self::default() }
    }

    /// OpenAI.
    ///
    /// # Panics
    /// Never: its profile is known.
    pub fn openai() -> Self {
        Self::named("openai").expect("OpenAI is known")
    }

    /// The profile of a server that is known: `azure`, `openrouter`, `groq`, `mistral`, `deepseek`, `ollama`, .., all of
    /// them in [`known`](Self::known). `chatgpt` is the backend of ChatGPT: Responses alone, with the access token of a
    /// subscriber, and the account's id in the header `chatgpt-account-id`.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for a name that is not known; it lists those that are.
    pub fn named(provider: &str) -> Result<Self> {
        KNOWN.iter().find(|known| known.provider == provider).cloned().ok_or_else(|| {
            let names: Vec<_> = KNOWN.iter().map(|known| known.provider.as_str()).collect();
            Error::config(format!("there is no profile '{provider}': there are {}", names.join(", ")))
        })
    }

    /// The profiles that come with this crate.
    pub fn known() -> &'static [Self] {
        &KNOWN
    }

    /// The profile of the server at `base_url`, known by its host and port; else a compatible server named after its host.
    pub fn of_url(base_url: &str) -> Self {
        let host = authority(base_url);
        match KNOWN.iter().find(|known| !host.is_empty() && fits(authority(&known.base_url), host)) {
            Some(known) => Self { base_url: base_url.into(), ..known.clone() },
            None => {
                let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
                Self::compatible(if name.is_empty() { "unknown" } else { name }, base_url)
            }
        }
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
        match self.missing() {
            None => endpoint(base_url, path),
            Some(place) => Err(Error::config(format!(
                "the address of {provider} is {base_url}: use Profile::with(\"{place}\", ..)"
            ))),
        }
    }

    /// The first place of the base URL that is not filled in.
    fn missing(&self) -> Option<&str> {
        let (_, rest) = self.base_url.split_once('{')?;
        rest.split_once('}').map(|(name, _)| name)
    }

    /// The fields that tell the server of the session.
    pub(crate) fn tell_session(&self, session: &str) -> Map<String, Value> {
        self.session_fields.iter().map(|field| (field.clone(), session.into())).collect()
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
            key_variable: "OPENAI_API_KEY".into(),
            auth: Auth::Bearer,
            system_role: SystemRole::System,
            names: BTreeMap::new(),
            include_usage: true,
            verbatim: true,
            cache_control: false,
            json_schema: true,
            json_schema_with_tools: false,
            effort: BTreeMap::new(),
            session_fields: vec!["user".into()],
            responses: ResponsesProfile::default(),
        }
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut said = Map::deserialize(deserializer)?;
        let whole = match said.remove("like") {
            None => Value::Object(said),
            Some(like) => {
                let like = Self::named(like.as_str().unwrap_or_default()).map_err(D::Error::custom)?;
                let mut whole = serde_json::to_value(like).map_err(D::Error::custom)?;
                lay(&mut whole, &Value::Object(said));
                whole
            }
        };
        Self::deserialize(whole).map_err(D::Error::custom)
    }
}

impl Serialize for Profile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// The host and the port of an address.
fn authority(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "" };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_user, host)| host)
}

/// True if `host` is `known`, of which `{..}` may be anything.
fn fits(known: &str, host: &str) -> bool {
    let local = host.strip_prefix("127.0.0.1").map(|port| format!("localhost{port}"));
    let host = local.as_deref().unwrap_or(host);
    match known.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?.1))) {
        Some((start, end)) => host.len() > start.len() + end.len() && host.starts_with(start) && host.ends_with(end),
        None => host.eq_ignore_ascii_case(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_server_is_found_by_its_name_and_its_address() {
        for known in Profile::known() {
            assert_eq!(&Profile::named(&known.provider).expect("known"), known);
            let filled = ["resource", "location", "project", "region", "account", "workspace"]
                .into_iter()
                .fold(known.clone(), |profile, name| profile.with(name, "x"));
            assert_eq!(filled.missing(), None, "{}", known.provider);
            assert_eq!(Profile::of_url(&filled.base_url), filled);
            crate::OpenAiChatCodec::new("m", filled).expect("its address is one");
        }
        let error = Profile::named("grok").expect_err("not known");
        assert!(error.message().contains("xai"), "{error}");
    }

    #[test]
    fn a_server_is_known_by_its_host() {
        assert_eq!(Profile::of_url("http://127.0.0.1:11434/v1").provider, "ollama");
        assert_eq!(Profile::of_url("https://x.openai.azure.com/openai/v1").auth, Auth::Header("api-key".into()));
        let own = Profile::of_url("http://10.0.0.7:9000/v1");
        assert_eq!(own, Profile::compatible("10.0.0.7", "http://10.0.0.7:9000/v1"));
        assert_eq!(Profile::of_url("nonsense").provider, "unknown");
    }

    #[test]
    fn what_a_configuration_leaves_out_is_as_with_a_compatible_server_or_the_one_that_it_is_like() {
        let read = |json| serde_json::from_str::<Profile>(json);
        let own = read(r#"{"provider": "p", "base_url": "http://gateway/v1"}"#).expect("parses");
        assert_eq!(own, Profile::compatible("p", "http://gateway/v1"));
        let like = read(r#"{"like": "openai", "base_url": "http://gateway/v1"}"#).expect("parses");
        assert_eq!(like, Profile { base_url: "http://gateway/v1".into(), ..Profile::openai() });
        assert!(read(r#"{"base_ulr": "http://gateway/v1"}"#).is_err(), "a slip of the pen is an error");
        assert!(read(r#"{"like": "nobody"}"#).is_err());
        let again = serde_json::to_string(&like).expect("a profile is JSON");
        assert_eq!(read(&again).expect("parses"), like);
    }
}
