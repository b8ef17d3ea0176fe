//! [`Retriever`].

use std::sync::Arc;

use agent_core::{Error, ErrorKind, Result, Usage};
use agent_retrieval::{
    embed::{EmbedRequest, Embedder},
    memory::Filter,
    rank::{RankRequest, Reranker},
    retrieval::{Found, Vector, VectorQuery, VectorStore},
};

use super::{Chunker, IndexProgress, KnowledgeTool, Passage};

/// Default maximum of tokens per chunk: a few paragraphs.
const CHUNK_TOKENS: u64 = 400;
/// Number of candidates for the reranker per requested passage.
const CANDIDATES: usize = 5;

/// Document index with hybrid search. Cheap to clone; clones share their state.
///
/// With an embedder, searches are hybrid: keyword and vector results are
/// [fused](agent_retrieval::search::fuse). Without one, only keywords count. A reranker receives five
/// times as many candidates and determines the final order.
///
/// ```
/// use agent_store::InMemoryVectorStore;
/// use agent_tools::retrieval::{Document, Retriever};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let retriever = Retriever::new(InMemoryVectorStore::default(), "handbook");
/// retriever.index(vec![Document::new("bees.md", "# Bees\n\nAda keeps bees."), Document::new("food.md", "No nuts.")]).await?;
/// let passages = retriever.search("Who keeps bees?").await?;
/// assert_eq!(passages[0].source(), "bees.md:1-3 (Bees)");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Retriever {
    pub(super) store: Arc<dyn VectorStore>,
    pub(super) collection: Arc<str>,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) chunker: Chunker,
    pub(super) progress: Option<Arc<dyn Fn(IndexProgress) + Send + Sync>>,
    reranker: Option<Arc<dyn Reranker>>,
    search: Search,
}

impl Retriever {
    /// Creates a retriever for a collection of this store, with keyword search until an
    /// [embedder](Self::embedder) is set. Defaults: at most 400 tokens per chunk, five passages per
    /// search.
    pub fn new(store: impl VectorStore, collection: impl Into<Arc<str>>) -> Self {
        Self {
            store: Arc::new(store),
            collection: collection.into(),
            embedder: None,
            chunker: Chunker::new(CHUNK_TOKENS),
            progress: None,
            reranker: None,
            search: Search::default(),
        }
    }

    /// Sets the embedder. All users of the collection need the same one.
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Sets the chunker. Another chunker makes other chunks: all are then embedded again.
    pub fn chunker(mut self, chunker: Chunker) -> Self {
        self.chunker = chunker;
        self
    }

    /// Sets the reranker, which determines the final order.
    pub fn reranker(mut self, reranker: impl Reranker) -> Self {
        self.reranker = Some(Arc::new(reranker));
        self
    }

    /// Sets the default maximum of passages per search. Default: 5.
    pub fn top_k(mut self, k: usize) -> Self {
        self.search.top_k = Some(k);
        self
    }

    /// Sets the minimum cosine similarity of a passage without any keyword of the question.
    /// Default: any.
    pub fn min_similarity(mut self, least: f32) -> Self {
        self.search.min_similarity = Some(least);
        self
    }

    /// Limits all searches to documents whose metadata match a filter.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.search.filter = Some(filter);
        self
    }

    /// Sets a callback for the progress of [indexing](Self::index), called after each batch.
    pub fn on_progress(mut self, told: impl Fn(IndexProgress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(told));
        self
    }

    /// Returns a tool with which an agent searches.
    pub fn tool(&self) -> KnowledgeTool {
        KnowledgeTool::new(self.clone())
    }

    /// Returns the passages that match a question, best first.
    ///
    /// # Errors
    /// Errors of the embedder, the reranker and the store; [`ErrorKind::Config`] if the
    /// collection's vectors are of another embedder.
    pub async fn search(&self, search: impl Into<Search>) -> Result<Vec<Passage>> {
        let search = search.into().or(&self.search);
        let top_k = search.top_k.unwrap_or(VectorQuery::default().top_k);
        let wanted = if self.reranker.is_some() { top_k.saturating_mul(CANDIDATES) } else { top_k };
        let mut query = VectorQuery::text(search.question.as_str()).top_k(wanted);
        (query.filter, query.min_similarity) = (search.filter, search.min_similarity);
        if top_k > 0 && !search.question.trim().is_empty() {
            query.vector = self.vectors(EmbedRequest::query(search.question.as_str())).await?.0.pop().flatten();
        }
        let found = self.store.search(&self.collection, &query).await?;
        let ranked = self.rerank(&search.question, found, top_k).await?;
        Ok(ranked.into_iter().take(top_k).map(Passage::new).collect())
    }

    async fn rerank(&self, question: &str, found: Vec<Found>, top_k: usize) -> Result<Vec<Found>> {
        let Some(reranker) = self.reranker.as_ref().filter(|_| found.len() > 1) else { return Ok(found) };
        let texts = found.iter().map(|found| found.record.text.as_str());
        let ranked = reranker.rank(RankRequest::new(question, texts).top(top_k)).await?.ranked;
        let mut found: Vec<Option<Found>> = found.into_iter().map(Some).collect();
        let mut pick = |index: usize, score: f32| {
            let mut found = found.get_mut(index).and_then(Option::take)?;
            found.score = score.into();
            Some(found)
        };
        let picked: Option<Vec<_>> = ranked.iter().map(|ranked| pick(ranked.index, ranked.score)).collect();
        picked.ok_or_else(|| {
            Error::new(ErrorKind::Protocol, "the reranker named a text twice, or one that it was not given")
        })
    }

    /// Returns the vectors of texts, and the usage; `None` without an embedder or for a text
    /// without a vector.
    pub(super) async fn vectors(&self, req: EmbedRequest) -> Result<(Vec<Option<Vector>>, Usage)> {
        let wanted = req.texts.len();
        let Some(embedder) = &self.embedder else { return Ok((vec![None; wanted], Usage::default())) };
        let (info, response) = (embedder.info(), embedder.embed(req).await?);
        if response.vectors.len() != wanted {
            let message = format!("the embedder gave {} vectors for {wanted} texts", response.vectors.len());
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        let vector = |values| Some(Vector::new(&info, values)).filter(Vector::has_direction);
        Ok((response.vectors.into_iter().map(vector).collect(), response.usage))
    }
}

impl std::fmt::Debug for Retriever {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retriever")
            .field("collection", &self.collection)
            .field("embedder", &self.embedder.as_ref().map(Embedder::info))
            .field("chunker", &self.chunker)
            .field("search", &self.search)
            .finish_non_exhaustive()
    }
}

/// Search query with options. Unset options have the values of the [`Retriever`].
///
/// ```
/// use agent_retrieval::memory::Filter;
/// use agent_tools::retrieval::Search;
///
/// let search = Search::new("How do I begin?").filter(Filter::eq("language", "en")).top_k(3);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Search {
    /// Question.
    pub question: String,
    /// Filter on the documents' metadata, in addition to the retriever's filter.
    pub filter: Option<Filter>,
    /// Maximum of passages.
    pub top_k: Option<usize>,
    /// Minimum cosine similarity of a passage that only its vector matches.
    pub min_similarity: Option<f32>,
}

impl Search {
    /// Creates a search for a question.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), ..Self::default() }
    }

    /// Sets the filter on the documents' metadata.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets the maximum of passages.
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = Some(k);
        self
    }

    /// Sets the minimum cosine similarity of a passage that only its vector matches.
    pub fn min_similarity(mut self, least: f32) -> Self {
        self.min_similarity = Some(least);
        self
    }

    fn or(self, defaults: &Self) -> Self {
        let filter = match (self.filter, defaults.filter.clone()) {
            (Some(own), Some(always)) => Some(always.and(own)),
            (own, always) => own.or(always),
        };
        Self {
            question: self.question,
            filter,
            top_k: self.top_k.or(defaults.top_k),
            min_similarity: self.min_similarity.or(defaults.min_similarity),
        }
    }
}

impl From<&str> for Search {
    fn from(question: &str) -> Self {
        Self::new(question)
    }
}

impl From<String> for Search {
    fn from(question: String) -> Self {
        Self::new(question)
    }
}
