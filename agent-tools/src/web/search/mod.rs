//! Search engines and their hits.

mod api;
mod brave;
mod duckduckgo;
mod local;
mod searxng;
mod tavily;

use std::sync::Arc;

use agent_core::{Result, async_trait};

pub use self::{brave::Brave, duckduckgo::DuckDuckGo, local::LocalIndex, searxng::Searxng, tavily::Tavily};

/// Searches the web, or another collection.
///
/// The model sees the text of an error of kind [`Tool`](agent_core::ErrorKind::Tool): it should
/// give advice, and must not contain a key.
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
    /// Returns the hits for the query, best first: at most [`count`](Query::count).
    ///
    /// # Errors
    /// If the engine is unreachable, or rejects the query.
    async fn search(&self, query: &Query) -> Result<Vec<Hit>>;
}

#[async_trait]
impl<E: SearchEngine + ?Sized> SearchEngine for Arc<E> {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        (**self).search(query).await
    }
}

/// Search query.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// Query text.
    pub text: String,
    /// Maximum of hits.
    pub count: usize,
}

impl Query {
    /// Creates a query for ten hits.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), count: 10 }
    }

    /// Sets the maximum of hits.
    #[must_use]
    pub fn count(mut self, most: usize) -> Self {
        self.count = most;
        self
    }
}

/// Search result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// Title.
    pub title: String,
    /// Address.
    pub url: String,
    /// Excerpt or summary.
    pub snippet: String,
    /// Publication date, as the engine writes it.
    pub date: Option<String>,
}

impl Hit {
    /// Creates a hit with this title and address.
    pub fn new(title: impl Into<String>, url: impl Into<String>) -> Self {
        Self { title: title.into(), url: url.into(), ..Self::default() }
    }

    /// Sets the excerpt or summary.
    #[must_use]
    pub fn snippet(mut self, words: impl Into<String>) -> Self {
        self.snippet = words.into();
        self
    }

    /// Sets the publication date.
    #[must_use]
    pub fn date(mut self, date: impl Into<String>) -> Self {
        self.date = Some(date.into());
        self
    }
}
