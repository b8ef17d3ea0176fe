//! [`ModelBuilder`]: builder of models by name, provider or codec.

use std::fmt;

use agent_core::{Error, ModelInfo, Result};
use serde_json::Value;

use super::{
    Provider, Providers, Wire,
    desk::Desk,
    reach::{Reach, Wanted},
    setters::connection_setters,
    source::Source,
    speaks::WireSupport,
};
use crate::{
    Auth, Catalogue, Codec, LayeredModel, RetryLayer,
    model::{HttpModel, HttpSettings},
};

/// Returns a builder for the model with this name, `provider:model`, such as
/// `anthropic:claude-opus-4-5`; the providers are those of [`Providers::of_process`].
///
/// A provider with several wires uses its first, or the one after an `@`: `openai:gpt-5@responses`.
/// Keys, regions and other settings that the builder lacks are read from the environment when the
/// model is built. One error lists everything that is still missing, and how to set it. With the
/// feature `offline`, `offline:any` is the embedded stand-in, which needs neither a network nor a
/// key.
///
/// A key is never sent to a server that it does not belong to: a key from the environment goes to
/// its own provider, or to the URL in the associated variable (`OPENAI_API_KEY` to
/// `OPENAI_BASE_URL`), unless that URL belongs to another known provider.
///
/// ```
/// use agent_core::Model;
///
/// let claude = agent_llm::model("anthropic:claude-opus-4-5").api_key("sk-ant-..").build()?;
/// assert_eq!(claude.info().context_window, Some(200_000));
/// let local = agent_llm::model("ollama:qwen3:8b").build()?;
/// let azure = agent_llm::model("azure:gpt-5@responses").option("resource", "acme").api_key("..").build()?;
///
/// let error = agent_llm::model("snowflake:llama4-maverick").build().expect_err("nothing is set");
/// assert!(error.message().contains("SNOWFLAKE_TOKEN") && error.message().contains("SNOWFLAKE_ACCOUNT"));
/// # Ok::<(), agent_core::Error>(())
/// ```
pub fn model(name: impl Into<String>) -> ModelBuilder {
    Providers::of_process().model(name)
}

/// Builder of a model: by [its name](model), of a [`Provider`], or from a custom [`Codec`].
#[must_use]
pub struct ModelBuilder {
    made_of: MadeOf,
    wanted: Wanted,
    known: Known,
    auth: Option<Auth>,
    http: HttpSettings,
    retries: u32,
}

/// Source of the model.
enum MadeOf {
    Model(Source),
    Codec(Box<dyn Codec>),
}

/// Facts about the model set on the builder.
#[derive(Default)]
struct Known {
    context_window: Option<u64>,
    max_output: Option<u64>,
    json_schema: Option<bool>,
    no_tools: bool,
}

impl ModelBuilder {
    /// Creates a builder from a codec, for a custom wire.
    pub fn new(codec: impl Codec) -> Self {
        Self::of(MadeOf::Codec(Box::new(codec)))
    }

    pub(super) fn named(providers: Providers, name: String) -> Self {
        Self::of(MadeOf::Model(Source::Named(providers, name)))
    }

    pub(super) fn at(provider: Provider, name: String) -> Self {
        Self::of(MadeOf::Model(Source::At(Box::new(provider), name)))
    }

    fn of(made_of: MadeOf) -> Self {
        let (wanted, known, http) = (Wanted::default(), Known::default(), HttpSettings::default());
        Self { made_of, wanted, known, auth: None, http, retries: 2 }
    }

    connection_setters!();

    /// Selects one of the provider's wires, as `@` in a name does. Default: its first.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wanted.wire = Some(wire);
        self
    }

    /// Sets a placeholder of the provider's URL, such as `region`, or a field of its profile for
    /// the wire, such as [`betas`](field@crate::AnthropicProfile::betas). Building fails for an
    /// unknown option, and lists the known ones.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let model = agent_llm::model("anthropic:claude-opus-4-5")
    ///     .api_key("sk-ant-..")
    ///     .option("betas", json!(["context-1m-2025-08-07"]))
    ///     .build()?;
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.wanted.options.push((name.into(), value.into()));
        self
    }

    /// Sets the maximum number of retries of temporary failures, as in [`RetryLayer`]. Default: 2.
    ///
    /// A [`RetryLayer`] around the model counts these attempts as its own, so that they add up
    /// rather than multiply. Set 0 if something else should be tried at once, as in a
    /// [`Failover`](crate::Failover).
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// Sends the session's id to the provider, in the fields that it defines for that: the provider
    /// uses it for its prompt cache, and to attribute abuse. OpenAI takes it as `prompt_cache_key`
    /// and `safety_identifier`, [compatible servers](crate::Profile::session_fields) as `user`,
    /// Anthropic as `metadata.user_id`; Gemini has no such field. Fields that a request sets in
    /// [`ModelParams::extra`](agent_core::ModelParams) take precedence.
    ///
    /// The session's id is sent unchanged, or as its SHA-256 if it is longer than the 64 characters
    /// that providers accept: an id that names a person reveals that person. Default: the id is not
    /// sent.
    pub fn tell_session(mut self) -> Self {
        self.http.tells_session = true;
        self
    }

    /// Sets the catalogue, which supplies the context window, unless set explicitly, and the
    /// prices. Default: [`Catalogue::builtin`].
    pub fn catalogue(mut self, models: Catalogue) -> Self {
        self.http.catalogue = models;
        self
    }

    /// Sets the context window: the maximum number of tokens of a request and its answer together.
    /// Default: from the catalogue.
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.known.context_window = Some(tokens);
        self
    }

    /// Sets the maximum number of output tokens. On the wire `messages`, where requests must
    /// contain a limit, it applies to every request without one; the default there is 32,000, or
    /// the model's maximum if that is known to be lower.
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.known.max_output = Some(tokens);
        self
    }

    /// Declares whether the provider enforces JSON Schemas for the model, also in combination with
    /// tools. Default: from the catalogue, else as for the provider's other models; false for a
    /// custom codec.
    pub fn json_schema(mut self, holds: bool) -> Self {
        self.known.json_schema = Some(holds);
        self
    }

    /// Declares that the model does not support tool calling.
    pub fn without_tools(mut self) -> Self {
        self.known.no_tools = true;
        self
    }

    /// Builds the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for an invalid name, an unknown provider or
    /// option, an invalid URL or header; one error also lists everything that is missing.
    pub fn build(self) -> Result<LayeredModel> {
        if let MadeOf::Model(source) = &self.made_of
            && source.name().is_some_and(|name| name.starts_with("offline:"))
        {
            return offline();
        }
        let retries = self.retries;
        let model = self.http_model()?;
        Ok(match retries {
            0 => LayeredModel::bare(model),
            most => LayeredModel::new(model, RetryLayer::of_model(most)),
        })
    }

    /// Builds the provider's client for requests other than completions.
    pub(crate) fn desk(self) -> Result<Desk> {
        let Self { made_of, wanted, auth, http, retries, known } = self;
        let MadeOf::Model(source) = made_of else {
            return Err(Error::config("a codec alone has neither files nor batches: name a provider"));
        };
        let reach = source.reach::<WireSupport>(&wanted, &http)?;
        let (provider, wire) = (reach.provider.clone(), reach.way);
        Ok(Desk::new(reached(reach, &known, auth, http)?, provider, wire, retries))
    }

    fn http_model(self) -> Result<HttpModel> {
        let Self { made_of, wanted, known, auth, http, .. } = self;
        match made_of {
            MadeOf::Codec(codec) => {
                let origin = codec.origin();
                let info = known.info(origin.model(), origin.provider(), false);
                HttpModel::new(codec, info, auth.unwrap_or_default(), http)
            }
            MadeOf::Model(source) => reached(source.reach(&wanted, &http)?, &known, auth, http),
        }
    }
}

/// Builds the HTTP model for a resolved endpoint.
fn reached(mut reach: Reach, known: &Known, auth: Option<Auth>, mut http: HttpSettings) -> Result<HttpModel> {
    reach.equip(&mut http);
    let mut info = known.info(&reach.model, &reach.provider.name, reach.speaks.holds_to_schemas(&reach.model));
    info.context_window = info.context_window.or(reach.speaks.window());
    let most = http.catalogue.complete(info.clone()).max_output;
    info.reserved_output = reach.speaks.reserved(&reach.model, known.max_output, most);
    let codec = reach.speaks.codec(reach.model, known.max_output, most)?;
    HttpModel::new(codec, info, auth.unwrap_or(reach.auth), http)
}

impl Known {
    fn info(&self, model: &str, provider: &str, json_schema: bool) -> ModelInfo {
        let mut info = ModelInfo::new(model).with_provider(provider);
        info.context_window = self.context_window;
        info.max_output = self.max_output;
        info.tools = !self.no_tools;
        info.json_schema = self.json_schema.unwrap_or(json_schema);
        info
    }
}

#[cfg(feature = "offline")]
fn offline() -> Result<LayeredModel> {
    Ok(LayeredModel::bare(crate::offline::OfflineModel))
}

#[cfg(not(feature = "offline"))]
fn offline() -> Result<LayeredModel> {
    Err(agent_core::Error::config("the offline model is not compiled in: enable the feature 'offline'"))
}

impl fmt::Debug for ModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ModelBuilder");
        match &self.made_of {
            MadeOf::Model(source) => source.show(&mut shown),
            MadeOf::Codec(codec) => {
                shown.field("codec", codec.origin());
            }
        }
        shown.field("http", &self.http).finish_non_exhaustive()
    }
}
