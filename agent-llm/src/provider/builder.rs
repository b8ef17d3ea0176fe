//! Making models: [`ModelBuilder`].

use std::fmt;

use agent_core::{Error, ModelInfo, Result};
use serde_json::Value;

use super::{
    Provider, Providers, Wire,
    desk::Desk,
    reach::{Reach, Wanted},
    setters::connection_setters,
    source::Source,
    speaks::Speaks,
};
use crate::{
    Auth, Catalogue, Codec, LayeredModel, RetryLayer,
    model::{HttpModel, HttpSettings},
};

/// Begins a model by its name, `provider:model`, such as `anthropic:claude-opus-4-5`; the providers are those of
/// [`Providers::of_process`].
///
/// A provider that speaks several wires is asked on its first, or on that after an `@`: `openai:gpt-5@responses`. Keys,
/// regions and the like are read from the environment when the model is built, where the builder is not told. What is
/// missing then is said in one error, with what to set. With the feature `offline`, `offline:any` is the embedded
/// stand-in, which needs neither a network nor a key.
///
/// A key is sent to no server that it does not belong to: one from the environment goes to its own provider, or to the address
/// that the variable beside it names (`OPENAI_API_KEY` to `OPENAI_BASE_URL`) if that is not another known provider's.
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

/// Makes a model: by [its name](model), of a [`Provider`], or of a [`Codec`] of your own.
#[must_use]
pub struct ModelBuilder {
    made_of: MadeOf,
    wanted: Wanted,
    known: Known,
    auth: Option<Auth>,
    http: HttpSettings,
    retries: u32,
}

/// What a model is made of.
enum MadeOf {
    Model(Source),
    Codec(Box<dyn Codec>),
}

/// What a builder was told of the model.
#[derive(Default)]
struct Known {
    context_window: Option<u64>,
    max_output: Option<u64>,
    json_schema: Option<bool>,
    no_tools: bool,
}

impl ModelBuilder {
    /// Begins a model of a codec: the way to a wire of your own.
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

    /// Chooses among the wires that the provider speaks, as `@` in a name does. Default: its first.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wanted.wire = Some(wire);
        self
    }

    /// Sets a place of the provider's address, such as `region`, or a field of its profile for the wire, such as
    /// [`betas`](field@crate::AnthropicProfile::betas). Building fails, and lists what there is, if it has no such option.
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

    /// Sets how often a call that failed for a moment is tried again, as [`RetryLayer`] does. Default: 2.
    ///
    /// A [`RetryLayer`] around the model counts these attempts as its own, so that they add up and do not multiply.
    /// Set 0 where something else is to be tried at once, as in a [`Failover`](crate::Failover).
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// Tells the provider for which session it works, in the fields that it has for that: it finds its cache again, and
    /// tells those who misuse it from others. OpenAI takes it as `prompt_cache_key` and `safety_identifier`, servers that
    /// are [alike](crate::Profile::session_fields) as `user`, Anthropic as `metadata.user_id`; Gemini has no such field.
    /// What a request says itself in [`ModelParams::extra`](agent_core::ModelParams) wins.
    ///
    /// The session's id is sent as it is, or as its SHA-256 if it is longer than the 64 characters that providers take:
    /// an id that names a person tells them who it is. Default: it is not told.
    pub fn tell_session(mut self) -> Self {
        self.http.tells_session = true;
        self
    }

    /// Sets what is known of models: from it come the context window, if none was set, and what calls cost.
    /// Default: [`Catalogue::builtin`].
    pub fn catalogue(mut self, models: Catalogue) -> Self {
        self.http.catalogue = models;
        self
    }

    /// Says how many tokens a request and its answer may have together. Default: what the catalogue knows.
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.known.context_window = Some(tokens);
        self
    }

    /// Says how many tokens an answer may have. On the wire `messages`, which must be told, it is the limit of every request
    /// that sets none; there the default is 32,000, or what the model can give if that is known to be less.
    pub fn max_output(mut self, tokens: u64) -> Self {
        self.known.max_output = Some(tokens);
        self
    }

    /// Says whether the model is held to a JSON Schema, beside tools too. Default: as its provider holds its models, if the
    /// catalogue knows no better; a codec's is not.
    pub fn json_schema(mut self, holds: bool) -> Self {
        self.known.json_schema = Some(holds);
        self
    }

    /// Says that tools cannot be offered to the model.
    pub fn without_tools(mut self) -> Self {
        self.known.no_tools = true;
        self
    }

    /// Makes the model.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for a name that is none, a provider that is not known, an option that there is
    /// not, an address that is none, a header that HTTP does not allow; and for everything that is missing, in one.
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

    /// What asks the provider for other things than answers.
    pub(crate) fn desk(self) -> Result<Desk> {
        let Self { made_of, wanted, auth, http, retries, known } = self;
        let MadeOf::Model(source) = made_of else {
            return Err(Error::config("a codec alone has neither files nor batches: name a provider"));
        };
        let reach = source.reach::<Speaks>(&wanted, &http)?;
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

/// The model at the end of the way.
fn reached(mut reach: Reach, known: &Known, auth: Option<Auth>, mut http: HttpSettings) -> Result<HttpModel> {
    reach.equip(&mut http);
    let mut info = known.info(&reach.model, &reach.provider.name, reach.speaks.holds_to_schemas(&reach.model));
    info.context_window = info.context_window.or(reach.speaks.window());
    let codec = reach.speaks.codec(reach.model, known.max_output, http.catalogue.complete(info.clone()).max_output)?;
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
