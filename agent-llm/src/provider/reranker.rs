//! [`RerankerBuilder`]: builder of rerankers.

use std::{fmt, sync::Arc};

use agent_core::Result;
use agent_retrieval::rank::Reranker;
use serde_json::Value;

use super::{Provider, Providers, reach::Wanted, setters::connection_setters, source::Source};
use crate::{
    Auth, Catalogue,
    model::HttpSettings,
    rank::{HttpReranker, RankProfile},
};

/// Returns a builder for the reranker with this name, `provider:model`, such as
/// `cohere:rerank-v3.5`; the providers are those of [`Providers::of_process`]. Keys, regions and
/// other settings are found as for [models](crate::model).
///
/// ```
/// use agent_retrieval::rank::Reranker;
///
/// let reranker = agent_llm::reranker("cohere:rerank-v3.5").api_key("..").build()?;
/// assert_eq!(reranker.info().provider, "cohere");
/// # Ok::<(), agent_core::Error>(())
/// ```
pub fn reranker(name: impl Into<String>) -> RerankerBuilder {
    Providers::of_process().reranker(name)
}

/// Builder of a reranker: by [its name](reranker), or of a [`Provider`].
#[must_use]
pub struct RerankerBuilder {
    source: Source,
    wanted: Wanted,
    auth: Option<Auth>,
    http: HttpSettings,
    retries: u32,
}

impl RerankerBuilder {
    pub(super) fn named(providers: Providers, name: String) -> Self {
        Self::of(Source::Named(providers, name))
    }

    pub(super) fn at(provider: Provider, name: String) -> Self {
        Self::of(Source::At(Box::new(provider), name))
    }

    fn of(source: Source) -> Self {
        Self { source, wanted: Wanted::default(), auth: None, http: HttpSettings::default(), retries: 2 }
    }

    connection_setters!();

    /// Sets a placeholder of the provider's URL, such as `region`, or a field of its
    /// [`RankProfile`], such as `extra`. Building fails for an unknown option, and lists the known
    /// ones.
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.wanted.options.push((name.into(), value.into()));
        self
    }

    /// Sets the maximum number of retries of temporary failures per call, as in
    /// [`RetryLayer`](crate::RetryLayer). Default: 2.
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// Sets the catalogue, which supplies prices per token. Default: [`Catalogue::builtin`].
    pub fn catalogue(mut self, models: Catalogue) -> Self {
        self.http.catalogue = models;
        self
    }

    /// Builds the reranker.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) as for [embedders](crate::EmbedderBuilder::build).
    pub fn build(self) -> Result<Arc<dyn Reranker>> {
        let Self { source, wanted, auth, mut http, retries } = self;
        let mut reach = source.reach::<RankProfile>(&wanted, &http)?;
        reach.equip(&mut http);
        let auth = auth.unwrap_or(reach.auth);
        let reranker = HttpReranker::new(reach.provider.name, reach.model, reach.speaks, retries, auth, http)?;
        Ok(Arc::new(reranker))
    }
}

impl fmt::Debug for RerankerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RerankerBuilder");
        self.source.show(&mut shown);
        shown.field("http", &self.http).finish_non_exhaustive()
    }
}
