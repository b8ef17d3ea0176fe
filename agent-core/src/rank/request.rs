//! What a reranker is asked, and what it answers.

use serde::{Deserialize, Serialize};

use crate::model::Usage;

/// Documents whose order is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankRequest {
    /// What they are to answer.
    pub query: String,
    /// The documents.
    pub documents: Vec<String>,
    /// How many of the best are wanted; all if unset.
    pub top: Option<usize>,
}

impl RankRequest {
    /// Asks for all documents in their order.
    pub fn new(query: impl Into<String>, documents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { query: query.into(), documents: documents.into_iter().map(Into::into).collect(), top: None }
    }

    /// Says how many of the best are wanted.
    #[must_use]
    pub fn top(mut self, most: usize) -> Self {
        self.top = Some(most);
        self
    }
}

/// How well one document answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranked {
    /// Its place among the documents of the request.
    pub index: usize,
    /// How well it answers: more is better. Scores of different rerankers cannot be compared, those of different queries
    /// hardly.
    pub score: f32,
}

impl Ranked {
    /// The document at `index` with its score.
    pub fn new(index: usize, score: f32) -> Self {
        Self { index, score }
    }
}

/// Documents in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankResponse {
    /// The documents, best first.
    pub ranked: Vec<Ranked>,
    /// What the call used.
    pub usage: Usage,
}

impl RankResponse {
    /// An answer. It puts the best first; equals keep their order.
    pub fn new(mut ranked: Vec<Ranked>, usage: Usage) -> Self {
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        Self { ranked, usage }
    }

    /// The best of them, if not all are wanted.
    #[must_use]
    pub fn best(mut self, top: Option<usize>) -> Self {
        self.ranked.truncate(top.unwrap_or(usize::MAX));
        self
    }
}
