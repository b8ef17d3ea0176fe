//! Local index as a search engine.

use agent_core::{Result, async_trait};
use url::Url;

use super::{Hit, Query, SearchEngine};
use crate::retrieval::{Retriever, Search};

/// Maximum length of a snippet, in bytes.
const SNIPPET: usize = 600;

/// Searches indexed documents, without network or key. Documents whose name is an address can be
/// read with `web_fetch`.
///
/// ```
/// use agent_store::InMemoryVectorStore;
/// use agent_tools::{
///     retrieval::{Document, Retriever},
///     web::{LocalIndex, Query, SearchEngine},
/// };
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let index = Retriever::new(InMemoryVectorStore::default(), "pages");
/// index.index(vec![Document::new("https://example.org/bees", "Ada keeps bees.").with("title", "Bees")]).await?;
/// let hits = LocalIndex::new(index).search(&Query::new("bees")).await?;
/// assert_eq!((&*hits[0].title, &*hits[0].url), ("Bees", "https://example.org/bees"));
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct LocalIndex(Retriever);

impl LocalIndex {
    /// Creates the engine from these documents. Their metadata may have a `title`, a `url` if that
    /// differs from their name, and a `date`.
    pub fn new(documents: Retriever) -> Self {
        Self(documents)
    }
}

#[async_trait]
impl SearchEngine for LocalIndex {
    async fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        let passages = self.0.search(Search::new(query.text.as_str()).top_k(query.count)).await?;
        let hit = |passage: crate::retrieval::Passage| {
            let of = |field: &str| passage.metadata.get(field).and_then(|value| value.as_str()).map(str::to_owned);
            let title = of("title").or_else(|| passage.headings.last().cloned());
            let url = of("url").unwrap_or_else(|| passage.document.clone());
            let at = if Url::parse(&url).is_ok() { url } else { passage.source() };
            let snippet = crate::text::cut(passage.text.trim(), SNIPPET).to_owned();
            Hit { title: title.unwrap_or_else(|| passage.document.clone()), url: at, snippet, date: of("date") }
        };
        Ok(passages.into_iter().map(hit).collect())
    }
}
