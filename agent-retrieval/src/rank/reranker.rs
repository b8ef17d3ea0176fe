//! [`Reranker`].

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{RankRequest, RankResponse};
use agent_core::Result;

/// Cross-encoder that scores documents by relevance to a query, reading each document together with
/// the query.
///
/// This is costlier and more accurate than comparing vectors: use it for the few dozen documents
/// that a search found.
#[async_trait]
pub trait Reranker: Send + Sync + 'static {
    /// Returns the reranker's provider and model.
    fn info(&self) -> RerankerInfo;

    /// Returns the documents best first, at most as many as requested.
    ///
    /// # Errors
    /// Those of the provider. A response that names an unknown document, or a document twice, is a
    /// [`Protocol`](agent_core::ErrorKind::Protocol) error.
    async fn rank(&self, req: RankRequest) -> Result<RankResponse>;
}

#[async_trait]
impl<R: Reranker + ?Sized> Reranker for Arc<R> {
    fn info(&self) -> RerankerInfo {
        (**self).info()
    }

    async fn rank(&self, req: RankRequest) -> Result<RankResponse> {
        (**self).rank(req).await
    }
}

/// Identity of a reranker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RerankerInfo {
    /// Name of the provider.
    pub provider: String,
    /// Name of the model.
    pub model: String,
}

impl RerankerInfo {
    /// Creates the info of a reranker of `provider`.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}
