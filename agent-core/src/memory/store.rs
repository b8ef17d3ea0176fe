//! Memories: texts about a user that are searched.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Filter;
use crate::error::Result;

/// Keeps texts about users, and finds those that fit a question. Nobody finds, changes or deletes another user's.
///
/// The conformance suite of `agent-store` (feature `testing`) tells whether an implementation does what is said here.
#[async_trait]
pub trait MemoryStore: Send + Sync + 'static {
    /// Adds memories of `user`, all or none, and gives their ids, in order. A memory without an id gets a new one; one whose
    /// id is there already takes its place.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn add(&self, user: &str, memories: Vec<Memory>) -> Result<Vec<String>>;

    /// The memories of `user` that fit `query`, best first. Without a word in the query, the newest that meet its filter.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn search(&self, user: &str, query: &MemoryQuery) -> Result<Vec<ScoredMemory>>;

    /// Changes a memory's text and metadata; true if there was one of that id.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn update(&self, user: &str, id: &str, text: &str, metadata: Map<String, Value>) -> Result<bool>;

    /// Deletes a memory; true if there was one of that id.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn delete(&self, user: &str, id: &str) -> Result<bool>;

    /// Deletes all memories of `user`, and tells how many there were.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn delete_all(&self, user: &str) -> Result<usize>;
}

/// A text about a user.
///
/// ```
/// use agent_core::memory::Memory;
///
/// let memory = Memory::new("Ada is allergic to nuts.").with("topic", "food");
/// assert_eq!(memory.metadata["topic"], "food");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Memory {
    /// Unique among the user's; given by the store if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What is searched.
    pub text: String,
    /// What it can be filtered by.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Memory {
    /// A memory of this text.
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

/// What is searched for.
///
/// ```
/// use agent_core::memory::{Filter, MemoryQuery};
///
/// let query = MemoryQuery::new("May Ada eat a walnut?").filter(Filter::eq("topic", "food")).top_k(3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// The question; a memory fits if it has one of its words, and the better the more and the rarer they are.
    pub text: String,
    /// What the metadata must meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// How many are wanted at most. Default: 5.
    pub top_k: usize,
}

impl MemoryQuery {
    /// The best five for this question.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), filter: None, top_k: 5 }
    }

    /// Sets what the metadata must meet.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets how many are wanted at most.
    #[must_use]
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = k;
        self
    }

    /// True if the memory's metadata meet the filter.
    pub fn admits(&self, memory: &Memory) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(&memory.metadata))
    }
}

/// A memory that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScoredMemory {
    /// The memory.
    pub memory: Memory,
    /// How well it fits: more is better, and only comparable within one search; 0 if nothing was asked.
    pub score: f64,
}

impl ScoredMemory {
    /// A memory with its score.
    pub fn new(memory: Memory, score: f64) -> Self {
        Self { memory, score }
    }
}
