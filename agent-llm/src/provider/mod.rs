//! Who serves models: [`Provider`], the table of them, and models by their names.

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

/// Who serves models: where, how a request for them is written, and where the key is found. It is data, without a key.
///
/// Those of many servers come with this crate; [`Providers`] is their table, which takes others too. In JSON, a provider may
/// be `like` one that is in the table already, and say only what differs.
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
    /// Its name, before the colon of a model's.
    pub name: String,
    /// The wires that it speaks; the first is taken where none is said.
    pub wires: Vec<Wire>,
    /// Those of them of which recorded exchanges with it are read and written again without loss. Nobody has tried the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<Wire>,
    /// The environment variables that may hold its key; the first that is set is taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyVariable>,
    /// Whether it may be asked without a key, as a server on your own machine. Default: false.
    pub keyless: bool,
    /// Whose access tokens are shown, as bearers, where no key is set; AWS's keys sign requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The environment variable that may name another address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url_variable: Option<String>,
    /// What the places `{..}` of its addresses are filled with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, Place>,
    /// Its address and its habits where it speaks OpenAI's wires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openai: Option<Profile>,
    /// Its address and its habits where it speaks Anthropic's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anthropic: Option<AnthropicProfile>,
    /// Its address and its habits where it speaks Gemini's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gemini: Option<GeminiProfile>,
    /// Its address and its habits where it speaks Cohere's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohere: Option<CohereProfile>,
    /// Its address and its habits where it speaks Converse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bedrock: Option<BedrockProfile>,
    /// Its address and its habits where it speaks Ollama's wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ollama: Option<OllamaProfile>,
    /// How it is asked for vectors, if it serves embedders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embed: Option<EmbedProfile>,
    /// How it is asked for the order of documents, if it serves rerankers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RankProfile>,
    /// Whose way of keeping files it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FileApi>,
    /// Whose way of taking batches it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchApi>,
    /// Where it is documented.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs: Option<String>,
}

/// What a place of an address is filled with: a region, a project, the name of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Place {
    /// The environment variables that may hold it; the first that is set is taken.
    pub variables: Vec<String>,
    /// What it is where nobody says. Default: it must be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl Provider {
    /// A server of one's own that speaks `wire` as nearly all do, and is asked without a key if none is given.
    pub fn new(name: impl Into<String>, wire: Wire, base_url: &str) -> Self {
        let mut provider = Self { name: name.into(), wires: vec![wire], keyless: true, ..Self::default() };
        wire.set_base_url(&mut provider, base_url);
        provider
    }

    /// Begins a model of this name, as this provider serves it.
    pub fn model(&self, name: impl Into<String>) -> ModelBuilder {
        ModelBuilder::at(self.clone(), name.into())
    }

    /// Begins an embedder of this name, as this provider serves it.
    pub fn embedder(&self, name: impl Into<String>) -> EmbedderBuilder {
        EmbedderBuilder::at(self.clone(), name.into())
    }

    /// Begins a reranker of this name, as this provider serves it.
    pub fn reranker(&self, name: impl Into<String>) -> RerankerBuilder {
        RerankerBuilder::at(self.clone(), name.into())
    }

    /// Fills in the place `{name}` of its addresses: the `resource` of Azure, the `region` of Bedrock.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let hole = format!("{{{name}}}");
        for url in self.base_urls_mut() {
            if value == "global" {
                *url = url.replace(&format!("//{hole}-"), "//"); // Google's hosts name no global location
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

    /// True if each user of it has an address of their own: then another address is still this provider's.
    fn is_everywhere(&self) -> bool {
        self.keyless || !self.places.is_empty()
    }

    /// That it can be used: what it says hangs together.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config), with all that is wrong.
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

    /// What it lacks to be asked so.
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
