//! Making embedders: [`EmbedderBuilder`].

use std::fmt;

use agent_core::Result;
use serde_json::Value;

use super::{Provider, Providers, reach::Wanted, setters::connection_setters, source::Source};
use crate::{
    Auth, Catalogue,
    embed::{EmbedCodec, EmbedOptions, EmbedProfile, EmbedWire, HashedEmbedder, HttpEmbedder, LayeredEmbedder, codec},
    model::HttpSettings,
};

/// Begins an embedder by its name, `provider:model`, such as `openai:text-embedding-3-small`; the providers are those of
/// [`Providers::of_process`].
///
/// Keys, regions and the like are found as for [models](crate::model), and what is missing is said in one error.
/// `offline:hashed` is the [`HashedEmbedder`], which needs nothing.
///
/// ```
/// use agent_core::embed::Embedder;
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

/// Makes an embedder: by [its name](embedder), of a [`Provider`], or of an [`EmbedCodec`] of your own.
#[must_use]
pub struct EmbedderBuilder {
    made_of: MadeOf,
    wanted: Wanted,
    auth: Option<Auth>,
    http: HttpSettings,
    options: EmbedOptions,
}

/// What an embedder is made of.
enum MadeOf {
    Model(Source),
    Codec(Box<dyn EmbedCodec>),
}

impl EmbedderBuilder {
    /// Begins an embedder of a codec: the way to a wire of your own.
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

    /// Sets a place of the provider's address, such as `region`, or a field of its [`EmbedProfile`], such as `extra`. Building
    /// fails, and lists what there is, if it has no such option.
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

    /// Sets how long vectors are, if a request does not say. Default: the model's own length. A model that has no choice of
    /// lengths refuses, or its answer is an error.
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.options.dimensions = Some(dimensions);
        self
    }

    /// Sets the most texts of one call. Default, and at most: what the provider takes.
    pub fn batch(mut self, most: usize) -> Self {
        self.options.batch = Some(most);
        self
    }

    /// Sets how many calls of one request run at the same time. Default: 4.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.options.concurrency = most;
        self
    }

    /// Has texts cut that are too long for the model: by the provider where it does that, or else before they are sent, which
    /// the catalogue must know the model's limit for. Default: they are refused with an error that says which.
    pub fn truncate(mut self, cut: bool) -> Self {
        self.options.truncate = cut;
        self
    }

    /// Sets how often each call that failed for a moment is tried again, as [`RetryLayer`](crate::RetryLayer) does.
    /// Default: 2.
    pub fn retries(mut self, most: u32) -> Self {
        self.options.retries = most;
        self
    }

    /// Sets what is known of models: the length of their vectors, how long a text may be, and what calls cost.
    /// Default: [`Catalogue::builtin`].
    pub fn catalogue(mut self, models: Catalogue) -> Self {
        self.http.catalogue = models;
        self
    }

    /// Makes the embedder.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for a name that is none, a provider that has no embedders, an option that
    /// there is not, an address that is none, a header that HTTP does not allow; and for everything that is missing, in one.
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
