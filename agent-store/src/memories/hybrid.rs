//! Memory store with hybrid search.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, Result, async_trait, run::new_id};
use agent_retrieval::{
    embed::{EmbedRequest, Embedder},
    memory::{Memory, MemoryQuery, MemoryStore, ScoredMemory},
    retrieval::{Found, Record, Vector, VectorQuery, VectorStore},
};
use serde_json::{Map, Value};

/// Default minimum cosine similarity of a memory without any of the query's words.
const MIN_SIMILARITY: f32 = 0.2;

/// Memory store on top of a [`VectorStore`] with hybrid (full-text and vector) search: *What may
/// she eat?* finds *Ada is allergic to nuts*. Each user's memories are a collection of their own,
/// which isolates users from each other.
///
/// Adding calls the embedder once for all texts, searching once for the query.
///
/// ```
/// # use agent_core::{Usage, async_trait};
/// # use agent_retrieval::embed::{EmbedRequest, EmbedResponse, Embedder, EmbedderInfo};
/// use agent_retrieval::memory::{Memory, MemoryQuery, MemoryStore};
/// use agent_store::{HybridMemoryStore, InMemoryVectorStore};
///
/// # /// Knows what is about food.
/// # struct MyEmbedder;
/// # #[async_trait]
/// # impl Embedder for MyEmbedder {
/// #     fn info(&self) -> EmbedderInfo {
/// #         EmbedderInfo::new("mine", "food")
/// #     }
/// #     async fn embed(&self, req: EmbedRequest) -> agent_core::Result<EmbedResponse> {
/// #         let about_food = |text: &String| text.contains("nuts") || text.contains("eat");
/// #         let vectors = req.texts.iter().map(|t| if about_food(t) { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect();
/// #         Ok(EmbedResponse::new(vectors, Usage::default()))
/// #     }
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = HybridMemoryStore::new(InMemoryVectorStore::default(), MyEmbedder);
/// store.add("ada", vec![Memory::new("Ada keeps bees."), Memory::new("She is allergic to nuts.")]).await?;
/// let found = store.search("ada", &MemoryQuery::new("What may I eat?")).await?;
/// assert_eq!(found[0].memory.text, "She is allergic to nuts.");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct HybridMemoryStore {
    store: Arc<dyn VectorStore>,
    embedder: Arc<dyn Embedder>,
    min_similarity: f32,
}

impl HybridMemoryStore {
    /// Creates a store that uses this vector store and embedder.
    pub fn new(store: impl VectorStore, embedder: impl Embedder) -> Self {
        Self { store: Arc::new(store), embedder: Arc::new(embedder), min_similarity: MIN_SIMILARITY }
    }

    /// Sets the minimum cosine similarity of a memory without any of the query's words. Typical
    /// similarities differ widely between embedders: test the value with yours. Default: 0.2.
    #[must_use]
    pub fn min_similarity(mut self, least: f32) -> Self {
        self.min_similarity = least;
        self
    }

    /// Embeds texts; yields none for a text whose vector has no direction.
    async fn vectors(&self, req: EmbedRequest) -> Result<Vec<Option<Vector>>> {
        let (wanted, info) = (req.texts.len(), self.embedder.info());
        let vectors = self.embedder.embed(req).await?.vectors;
        if vectors.len() != wanted {
            let message = format!("the embedder returned {} vectors for {wanted} texts", vectors.len());
            return Err(Error::new(ErrorKind::Protocol, message));
        }
        let vectors = vectors.into_iter().map(|values| Some(Vector::new(&info, values)).filter(Vector::has_direction));
        Ok(vectors.collect())
    }
}

#[async_trait]
impl MemoryStore for HybridMemoryStore {
    async fn add(&self, user: &str, memories: Vec<Memory>) -> Result<Vec<String>> {
        if memories.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.vectors(EmbedRequest::documents(memories.iter().map(|memory| memory.text.clone()))).await?;
        let record = |(memory, vector): (Memory, Option<Vector>)| {
            let mut record = Record::new(memory.id.unwrap_or_else(new_id), memory.text);
            (record.metadata, record.vector) = (memory.metadata, vector);
            record
        };
        let records: Vec<_> = memories.into_iter().zip(vectors).map(record).collect();
        let ids = records.iter().map(|record| record.id.clone()).collect();
        self.store.upsert(user, records).await?;
        Ok(ids)
    }

    async fn search(&self, user: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>> {
        let mut search = VectorQuery::text(query.text.as_str()).top_k(query.top_k).min_similarity(self.min_similarity);
        search.filter.clone_from(&query.filter);
        if query.top_k > 0 && !search.words().is_empty() {
            search.vector = self.vectors(EmbedRequest::query(query.text.as_str())).await?.pop().flatten();
        }
        let found = self.store.search(user, &search).await?.into_iter().map(|Found { record, score, .. }| {
            let mut memory = Memory::new(record.text).with_id(record.id);
            memory.metadata = record.metadata;
            ScoredMemory::new(memory, score)
        });
        Ok(found.collect())
    }

    async fn update(&self, user: &str, id: &str, text: &str, metadata: Map<String, Value>) -> Result<bool> {
        if self.store.get(user, &[id.to_owned()]).await?.is_empty() {
            return Ok(false);
        }
        let mut record = Record::new(id, text);
        (record.metadata, record.vector) =
            (metadata, self.vectors(EmbedRequest::documents([text])).await?.pop().flatten());
        self.store.upsert(user, vec![record]).await?;
        Ok(true)
    }

    async fn delete(&self, user: &str, id: &str) -> Result<bool> {
        Ok(self.store.delete(user, &[id.to_owned()]).await? > 0)
    }

    async fn delete_all(&self, user: &str) -> Result<usize> {
        self.store.clear(user).await
    }
}

impl std::fmt::Debug for HybridMemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HybridMemoryStore")
            .field("embedder", &self.embedder.info())
            .field("min_similarity", &self.min_similarity)
            .finish_non_exhaustive()
    }
}
