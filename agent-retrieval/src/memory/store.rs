//! Memories: searchable texts about a user.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Filter;
use agent_core::Result;

/// Store of searchable texts about users. All operations are restricted to one user.
///
/// The conformance suite of `agent-store` (feature `testing`) checks an implementation.
#[async_trait]
pub trait MemoryStore: Send + Sync + 'static {
    /// Adds memories of `user` atomically, and returns their ids in order. A memory without an id
    /// gets a new one; one with an existing id replaces that memory.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn add(&self, user: &str, memories: Vec<Memory>) -> Result<Vec<String>>;

    /// Returns the memories of `user` that match `query`, best first. If the query has no words,
    /// returns the newest that match its filter.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn search(&self, user: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>>;

    /// Changes a memory's text and metadata. Returns `true` if it existed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn update(&self, user: &str, id: &str, text: &str, metadata: Map<String, Value>) -> Result<bool>;

    /// Deletes a memory. Returns `true` if it existed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn delete(&self, user: &str, id: &str) -> Result<bool>;

    /// Deletes all memories of `user`. Returns their number.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn delete_all(&self, user: &str) -> Result<usize>;
}

/// A text about a user.
///
/// ```
/// use agent_retrieval::memory::Memory;
///
/// let memory = Memory::new("Ada is allergic to nuts.").with("topic", "food");
/// assert_eq!(memory.metadata["topic"], "food");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Memory {
    /// Id of the memory, unique per user; assigned by the store if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The searchable text.
    pub text: String,
    /// Metadata for filters.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Memory {
    /// Creates a memory with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a field to the metadata.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(field.into(), value.into());
        self
    }
}

/// Query for memories.
///
/// ```
/// use agent_retrieval::memory::{Filter, MemoryQuery};
///
/// let query = MemoryQuery::new("May Ada eat a walnut?").filter(Filter::eq("topic", "food")).top_k(3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// The question. A memory matches if it contains one of its words; more and rarer matching
    /// words score higher.
    pub text: String,
    /// Filter on the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Maximum number of results. Default: 5.
    pub top_k: usize,
}

impl MemoryQuery {
    /// Creates a query for the best five results.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), filter: None, top_k: 5 }
    }

    /// Sets the filter on the metadata.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets the maximum number of results.
    #[must_use]
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = k;
        self
    }

    /// True if the memory's metadata match the filter.
    pub fn admits(&self, memory: &Memory) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(&memory.metadata))
    }
}

/// A search result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScoredMemory {
    /// The memory.
    pub memory: Memory,
    /// Relevance: higher is better, and only comparable within one search; 0 if the query has no
    /// words.
    pub score: f64,
}

impl ScoredMemory {
    /// Creates a result.
    pub fn new(memory: Memory, score: f64) -> Self {
        Self { memory, score }
    }
}
