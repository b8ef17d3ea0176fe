//! [`Provider`], the table of providers, and models by name.

mod builder;
pub(crate) mod desk;
mod embedder;
mod identity;
mod key;
mod offers;
mod profiles;
mod reach;
mod reranker;
mod setters;
mod source;
mod speaks;
mod table;
mod vectors;
mod way;
mod wire;

use std::collections::BTreeMap;

use agent_core::{Error, Result};
use serde::{Deserialize, Serialize};

pub use self::{
    builder::{ModelBuilder, model},
    embedder::{EmbedderBuilder, embedder},
    identity::Identity,
    key::KeyVariable,
    offers::{BatchApi, FileApi},
    reranker::{RerankerBuilder, reranker},
    table::Providers,
    wire::Wire,
};
use self::{
    vectors::{Embeds, Ranks},
    way::Way,
};
use crate::{
    AnthropicProfile, BedrockProfile, CohereProfile, GeminiProfile, OllamaProfile, Profile,
    embed::EmbedProfile,
    rank::RankProfile,
    wire::endpoint::{endpoint, place},
};

/// A provider of models: URLs, dialects of its wires, and the variables with its key. It is data,
/// without a key.
///
/// This crate contains many providers; [`Providers`] is their table, which can be extended. In
/// JSON, a provider may be `like` an existing one, and only contain the differences.
///
/// ```
/// use agent_llm::{Provider, Providers, Wire};
///
/// let azure = Providers::builtin().find("azure")?.clone();
/// assert_eq!((azure.wires[0], azure.keys[0].variable.as_str()), (Wire::Chat, "AZURE_OPENAI_API_KEY"));
///
/// let gateway = Provider::new("gateway", Wire::Chat, "http://10.0.0.7:9000/v1");
/// let model = gateway.model("our-llama").header("x-team", "7").build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Provider {
    /// Name, the part before the colon of a model's name.
    pub name: String,
    /// Supported wires; the first is the default.
    pub wires: Vec<Wire>,
    /// Wires for which recorded exchanges are decoded and encoded again without loss. The others
    /// are untested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<Wire>,
    /// Environment variables that may contain the key; the first one that is set is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyVariable>,
    /// True if no key is required, as for a server on your own machine. Default: false.
    pub keyless: bool,
    /// Identity whose access tokens are sent as bearer tokens if no key is set; AWS credentials
    /// sign requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Environment variable that overrides the base URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url_variable: Option<String>,
    /// Placeholders `{..}` of its URLs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, Place>,
    /// URL and dialect for OpenAI's wires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openai: Option<Profile>,
    /// URL and dialect for Anthropic's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anthropic: Option<AnthropicProfile>,
    /// URL and dialect for Gemini's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gemini: Option<GeminiProfile>,
    /// URL and dialect for Cohere's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohere: Option<CohereProfile>,
    /// URL and dialect for Converse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bedrock: Option<BedrockProfile>,
    /// URL and dialect for Ollama's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ollama: Option<OllamaProfile>,
    /// Embedding API, if it serves embedders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embed: Option<EmbedProfile>,
    /// Reranking API, if it serves rerankers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RankProfile>,
    /// File API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FileApi>,
    /// Batch API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchApi>,
    /// URL of its documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
}

/// Placeholder of a URL: a region, a project, the name of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Place {
    /// Environment variables that may contain the value; the first one that is set is used.
    pub variables: Vec<String>,
    /// Default value. Without one, a value is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl Provider {
    /// Creates the provider of a custom server with the usual dialect of `wire`, which requires no
    /// key.
    pub fn new(name: impl Into<String>, wire: Wire, base_url: &str) -> Self {
        let mut provider = Self { name: name.into(), wires: vec![wire], keyless: true, ..Self::default() };
        wire.set_base_url(&mut provider, base_url);
        provider
    }

    /// Returns a builder for the model that this provider serves under this name.
    pub fn model(&self, name: impl Into<String>) -> ModelBuilder {
        ModelBuilder::at(self.clone(), name.into())
    }

    /// Returns a builder for the embedder that this provider serves under this name.
    pub fn embedder(&self, name: impl Into<String>) -> EmbedderBuilder {
        EmbedderBuilder::at(self.clone(), name.into())
    }

    /// Returns a builder for the reranker that this provider serves under this name.
    pub fn reranker(&self, name: impl Into<String>) -> RerankerBuilder {
        RerankerBuilder::at(self.clone(), name.into())
    }

    /// Fills in the placeholder `{name}` of its URLs: the `resource` of Azure, the `region` of
    /// Bedrock.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let hole = format!("{{{name}}}");
        for url in self.base_urls_mut() {
            if value == "global" {
                *url = url.replace(&format!("//{hole}-"), "//"); // for Google's global hosts
            }
            *url = url.replace(&hole, value);
        }
        self.places.remove(name);
        self
    }

    fn base_urls_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let openai = self.openai.as_mut().map(|profile| &mut profile.base_url);
        let anthropic = self.anthropic.as_mut().map(|profile| &mut profile.base_url);
        let gemini = self.gemini.as_mut().map(|profile| &mut profile.base_url);
        let cohere = self.cohere.as_mut().map(|profile| &mut profile.base_url);
        let bedrock = self.bedrock.as_mut().map(|profile| &mut profile.base_url);
        let ollama = self.ollama.as_mut().map(|profile| &mut profile.base_url);
        let embed = self.embed.as_mut().map(|profile| &mut profile.base_url);
        let rerank = self.rerank.as_mut().map(|profile| &mut profile.base_url);
        [openai, anthropic, gemini, cohere, bedrock, ollama, embed, rerank].into_iter().flatten()
    }

    /// Returns true if each user has a separate URL, so that any URL may be this provider's.
    fn is_everywhere(&self) -> bool {
        self.keyless || !self.places.is_empty()
    }

    /// Checks that the provider is consistent.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config), listing all inconsistencies.
    fn check(&self) -> Result<()> {
        let mut wrong = Vec::new();
        if self.name.is_empty() || self.name.contains([':', '@', '/', ' ']) {
            wrong.push("its name is empty, or has one of ':', '@', '/' and a space".to_owned());
        }
        if self.wires.is_empty() && self.embed.is_none() && self.rerank.is_none() {
            wrong.push("it speaks no wire".to_owned());
        }
        if self.keys.is_empty() && !self.keyless {
            wrong.push("it names no variable for its key, and is not keyless".to_owned());
        }
        wrong.extend(
            self.recorded
                .iter()
                .filter(|wire| !self.wires.contains(wire))
                .map(|wire| format!("'{wire}' is recorded, and it does not speak that")),
        );
        self.wires.iter().for_each(|wire| wrong.extend(self.lack(*wire)));
        wrong.extend(self.embed.as_ref().and_then(|profile| self.lack(Embeds(profile.wire))));
        wrong.extend(self.rerank.as_ref().and_then(|profile| self.lack(Ranks(profile.wire))));
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Error::config(format!("the provider '{}' is wrong: {}", self.name, wrong.join("; "))))
    }

    /// Returns what is missing for this API, if anything.
    fn lack(&self, way: impl Way) -> Option<String> {
        let Some(url) = way.base_url(self) else {
            return Some(format!("it speaks '{way}', and has no profile '{}', or no address there", way.profile()));
        };
        let filled = self.places.keys().fold(url.to_owned(), |url, name| url.replace(&format!("{{{name}}}"), "x"));
        match place(&filled) {
            Some(place) => Some(format!("the place '{place}' of its address is none of its places")),
            None => endpoint(&filled, "/").err().map(|e| e.message().to_owned()),
        }
    }
}
