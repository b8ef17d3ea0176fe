//! [`Retriever`].

use std::sync::Arc;

use agent_core::{
    Error, ErrorKind, Result, Usage,
    embed::{EmbedRequest, Embedder},
    memory::Filter,
    rank::{RankRequest, Reranker},
    retrieval::{Found, Vector, VectorQuery, VectorStore},
};

use super::{Chunker, IndexProgress, KnowledgeTool, Passage};

/// Tokens of a chunk, unless somebody says otherwise: a few paragraphs.
const CHUNK_TOKENS: u64 = 400;
/// How many passages a reranker is given for each that is wanted.
const CANDIDATES: usize = 5;

/// Documents that are found by their words and their meaning. Cheap to clone; all clones are one.
///
/// With an embedder, searches are hybrid: by words and by vectors, [fused](agent_core::search::fuse). Without one, words alone decide. A
/// reranker looks at the best five times as many and has the last word.
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
    /// Documents in a collection of this store, found by their words until there is an [embedder](Self::embedder). Chunks have at most 400 tokens, and
    /// five passages are found.
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

    /// Sets what makes vectors. All who use the collection need the same.
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Sets what cuts documents. Another one makes other chunks: all are then embedded again.
    pub fn chunker(mut self, chunker: Chunker) -> Self {
        self.chunker = chunker;
        self
    }

    /// Sets what has the last word on the order of what was found.
    pub fn reranker(mut self, reranker: impl Reranker) -> Self {
        self.reranker = Some(Arc::new(reranker));
        self
    }

    /// Sets how many passages are found at most, where a search does not say so. Default: 5.
    pub fn top_k(mut self, k: usize) -> Self {
        self.search.top_k = Some(k);
        self
    }

    /// Sets the least cosine at which a passage is found that has none of the question's words. Default: any.
    pub fn min_similarity(mut self, least: f32) -> Self {
        self.search.min_similarity = Some(least);
        self
    }

    /// Limits all searches to documents whose metadata meet a filter.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.search.filter = Some(filter);
        self
    }

    /// Is told how far [indexing](Self::index) has come, after each batch.
    pub fn on_progress(mut self, told: impl Fn(IndexProgress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(told));
        self
    }

    /// A tool by which an agent searches.
    pub fn tool(&self) -> KnowledgeTool {
        KnowledgeTool::new(self.clone())
    }

    /// The passages that fit a question, best first.
    ///
    /// # Errors
    /// The embedder's, the reranker's and the store's; [`ErrorKind::Config`] if the collection's vectors are of another embedder.
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

    /// The vectors of texts, none where there is no embedder or a text means nothing to it; and what they used.
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

/// A question, and what it may be answered from. What it does not say is as the [`Retriever`] says.
///
/// ```
/// use agent_core::memory::Filter;
/// use agent_tools::retrieval::Search;
///
/// let search = Search::new("How do I begin?").filter(Filter::eq("language", "en")).top_k(3);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Search {
    /// The question.
    pub question: String,
    /// What the documents' metadata must meet, beside what the retriever's filter wants.
    pub filter: Option<Filter>,
    /// How many passages are wanted at most.
    pub top_k: Option<usize>,
    /// The least cosine of what is found by its vector alone.
    pub min_similarity: Option<f32>,
}

impl Search {
    /// A question.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), ..Self::default() }
    }

    /// Sets what the documents' metadata must meet.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets how many passages are wanted at most.
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = Some(k);
        self
    }

    /// Sets the least cosine of what is found by its vector alone.
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
