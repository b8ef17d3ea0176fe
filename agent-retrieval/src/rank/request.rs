//! Requests and responses of rerankers.

use serde::{Deserialize, Serialize};

use agent_core::model::Usage;

/// Documents to rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankRequest {
    /// The query.
    pub query: String,
    /// The documents.
    pub documents: Vec<String>,
    /// Maximum number of results. Default: all.
    pub top: Option<usize>,
}

impl RankRequest {
    /// Creates a request to rank all documents.
    pub fn new(query: impl Into<String>, documents: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { query: query.into(), documents: documents.into_iter().map(Into::into).collect(), top: None }
    }

    /// Sets the maximum number of results.
    #[must_use]
    pub fn top(mut self, most: usize) -> Self {
        self.top = Some(most);
        self
    }
}

/// Relevance of one document.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranked {
    /// Index of the document in the request.
    pub index: usize,
    /// Relevance: higher is better. Scores of different rerankers are not comparable, and those of
    /// different queries hardly.
    pub score: f32,
}

impl Ranked {
    /// Creates the result of the document at `index`.
    pub fn new(index: usize, score: f32) -> Self {
        Self { index, score }
    }
}

/// Ranked documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankResponse {
    /// The documents, best first.
    pub ranked: Vec<Ranked>,
    /// Usage of the call.
    pub usage: Usage,
}

impl RankResponse {
    /// Creates a response, sorted best first; ties keep their order.
    pub fn new(mut ranked: Vec<Ranked>, usage: Usage) -> Self {
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        Self { ranked, usage }
    }

    /// Truncates to the best `top` results.
    #[must_use]
    pub fn best(mut self, top: Option<usize>) -> Self {
        self.ranked.truncate(top.unwrap_or(usize::MAX));
        self
    }
}
