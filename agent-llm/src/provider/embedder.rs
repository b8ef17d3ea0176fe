//! [`EmbedderBuilder`]: builder of embedders.

use std::fmt;

use agent_core::Result;
use serde_json::Value;

use super::{Provider, Providers, reach::Wanted, setters::connection_setters, source::Source};
use crate::{
    Auth, Catalogue,
    embed::{EmbedCodec, EmbedOptions, EmbedProfile, EmbedWire, HashedEmbedder, HttpEmbedder, LayeredEmbedder, codec},
    model::HttpSettings,
};

/// Returns a builder for the embedder with this name, `provider:model`, such as
/// `openai:text-embedding-3-small`; the providers are those of [`Providers::of_process`].
///
/// Keys, regions and other settings are found as for [models](crate::model), and one error lists
/// what is missing. `offline:hashed` is the [`HashedEmbedder`], which needs no settings.
///
/// ```
/// use agent_retrieval::embed::Embedder;
///
/// let small = agent_llm::embedder("openai:text-embedding-3-small").api_key("sk-..").dimensions(512).build()?;
/// assert_eq!(small.info().dimensions, Some(512));
/// let local = agent_llm::embedder("ollama:nomic-embed-text").build()?;
///
/// let error = agent_llm::embedder("anthropic:claude").build().expect_err("it has none");
/// assert!(error.message().contains("anthropic is not known to serve embeddings"));
/// # Ok::<(), agent_core::Error>(())
/// ```
pub fn embedder(name: impl Into<String>) -> EmbedderBuilder {
    Providers::of_process().embedder(name)
}

/// Builder of an embedder: by [its name](embedder), of a [`Provider`], or from a custom
/// [`EmbedCodec`].
#[must_use]
pub struct EmbedderBuilder {
    made_of: MadeOf,
    wanted: Wanted,
    auth: Option<Auth>,
    http: HttpSettings,
    options: EmbedOptions,
}

/// Source of the embedder.
enum MadeOf {
    Model(Source),
    Codec(Box<dyn EmbedCodec>),
}

impl EmbedderBuilder {
    /// Creates a builder from a codec, for a custom wire.
    pub fn new(codec: impl EmbedCodec) -> Self {
        Self::of(MadeOf::Codec(Box::new(codec)))
    }

    pub(super) fn named(providers: Providers, name: String) -> Self {
        Self::of(MadeOf::Model(Source::Named(providers, name)))
    }

    pub(super) fn at(provider: Provider, name: String) -> Self {
        Self::of(MadeOf::Model(Source::At(Box::new(provider), name)))
    }

    fn of(made_of: MadeOf) -> Self {
        let options = EmbedOptions::default();
        Self { made_of, wanted: Wanted::default(), auth: None, http: HttpSettings::default(), options }
    }

    connection_setters!();

    /// Sets a placeholder of the provider's URL, such as `region`, or a field of its
    /// [`EmbedProfile`], such as `extra`. Building fails for an unknown option, and lists the known
    /// ones.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let local = agent_llm::embedder("ollama:nomic-embed-text").option("extra", json!({"keep_alive": "1h"})).build()?;
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.wanted.options.push((name.into(), value.into()));
        self
    }

    /// Sets the default length of vectors. Default: the model's own length. A model with a fixed
    /// length rejects the request, or its answer is an error.
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.options.dimensions = Some(dimensions);
        self
    }

    /// Sets the maximum number of texts per call. Default, and upper bound: the provider's limit.
    pub fn batch(mut self, most: usize) -> Self {
        self.options.batch = Some(most);
        self
    }

    /// Sets the maximum number of concurrent calls per request. Default: 4.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.options.concurrency = most;
        self
    }

    /// Truncates texts that are too long for the model: by the provider if it supports that, else
    /// before they are sent, which requires the model's limit in the catalogue. Default: they are
    /// rejected with an error that names the text.
    pub fn truncate(mut self, cut: bool) -> Self {
        self.options.truncate = cut;
        self
    }

    /// Sets the maximum number of retries of temporary failures per call, as in
    /// [`RetryLayer`](crate::RetryLayer). Default: 2.
    pub fn retries(mut self, most: u32) -> Self {
        self.options.retries = most;
        self
    }

    /// Sets the catalogue, which supplies the length of vectors, the maximum length of a text, and
    /// the prices. Default: [`Catalogue::builtin`].
    pub fn catalogue(mut self, models: Catalogue) -> Self {
        self.http.catalogue = models;
        self
    }

    /// Builds the embedder.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid name, a provider without embedders,
    /// an unknown option, an invalid URL or header; one error also lists everything that is
    /// missing.
    pub fn build(self) -> Result<LayeredEmbedder> {
        let Self { made_of, wanted, auth, mut http, mut options } = self;
        let mut reach = match made_of {
            MadeOf::Codec(codec) => {
                let embedder = HttpEmbedder::new(codec, options, auth.unwrap_or_default(), http)?;
                return Ok(LayeredEmbedder::bare(embedder));
            }
            MadeOf::Model(source) if source.name() == Some("offline:hashed") => {
                let hashed = HashedEmbedder::new();
                let hashed = options.dimensions.map_or(hashed, |length| hashed.with_dimensions(length));
                return Ok(LayeredEmbedder::bare(hashed));
            }
            MadeOf::Model(source) => source.reach::<EmbedProfile>(&wanted, &http)?,
        };
        reach.equip(&mut http);
        options.cuts = reach.speaks.wire != EmbedWire::Openai || !reach.speaks.truncating.is_empty();
        let codec = codec(reach.provider.name, reach.model, reach.speaks)?;
        Ok(LayeredEmbedder::bare(HttpEmbedder::new(codec, options, auth.unwrap_or(reach.auth), http)?))
    }
}

impl fmt::Debug for EmbedderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("EmbedderBuilder");
        match &self.made_of {
            MadeOf::Model(source) => source.show(&mut shown),
            MadeOf::Codec(codec) => {
                shown.field("provider", &codec.provider()).field("model", &codec.model());
            }
        }
        shown.field("options", &self.options).field("http", &self.http).finish_non_exhaustive()
    }
}
