//! Engines that search, and what they find.

mod api;
mod brave;
mod duckduckgo;
mod local;
mod searxng;
mod tavily;

use std::sync::Arc;

use agent_core::{Result, async_trait};

pub use self::{brave::Brave, duckduckgo::DuckDuckGo, local::LocalIndex, searxng::Searxng, tavily::Tavily};

/// Searches the web, or something like it.
///
/// An error of kind [`Tool`](agent_core::ErrorKind::Tool) is told to the model: it says what can be done about it, and holds no key.
///
/// ```
/// use agent_core::{Result, async_trait};
/// use agent_tools::web::{Hit, Query, SearchEngine};
///
/// struct Fixed;
///
/// #[async_trait]
/// impl SearchEngine for Fixed {
///     async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
///         Ok(vec![Hit::new("Bees", "https://example.org/bees").snippet(format!("All about {}.", query.text))])
///     }
/// }
/// ```
#[async_trait]
pub trait SearchEngine: Send + Sync + 'static {
    /// What fits the query, best first: at most [`count`](Query::count).
    ///
    /// # Errors
    /// If the engine cannot be asked, or refuses.
    async fn search(&self, query: &Query) -> Result<Vec<Hit>>;
}

#[async_trait]
impl<E: SearchEngine + ?Sized> SearchEngine for Arc<E> {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        (**self).search(query).await
    }
}

/// What is sought.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// The words.
    pub text: String,
    /// How many hits are wanted at most.
    pub count: usize,
}

impl Query {
    /// A query for ten hits.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), count: 10 }
    }

    /// Sets how many hits are wanted at most.
    #[must_use]
    pub fn count(mut self, most: usize) -> Self {
        self.count = most;
        self
    }
}

/// One thing that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The title.
    pub title: String,
    /// The address.
    pub url: String,
    /// Some words of it, or about it.
    pub snippet: String,
    /// When it was published, as the engine writes it.
    pub date: Option<String>,
}

impl Hit {
    /// A page with this title at this address.
    pub fn new(title: impl Into<String>, url: impl Into<String>) -> Self {
        Self { title: title.into(), url: url.into(), ..Self::default() }
    }

    /// Sets some words of the page, or about it.
    #[must_use]
    pub fn snippet(mut self, words: impl Into<String>) -> Self {
        self.snippet = words.into();
        self
    }

    /// Sets when it was published.
    #[must_use]
    pub fn date(mut self, date: impl Into<String>) -> Self {
        self.date = Some(date.into());
        self
    }
}
