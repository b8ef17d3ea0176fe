//! [`Reranker`].

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{RankRequest, RankResponse};
use crate::error::Result;

/// Says how well documents answer a query, after a look at each of them together with it.
///
/// That is dearer than to compare vectors, and better: it is for the few dozen documents that a search found.
#[async_trait]
pub trait Reranker: Send + Sync + 'static {
    /// What it is.
    fn info(&self) -> RerankerInfo;

    /// The documents, best first; as many as were asked for.
    ///
    /// # Errors
    /// The provider's. An answer that names a document that there is not, or one twice, is a
    /// [`Protocol`](crate::ErrorKind::Protocol) error.
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

/// What a reranker is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RerankerInfo {
    /// Who provides it.
    pub provider: String,
    /// Its model's name.
    pub model: String,
}

impl RerankerInfo {
    /// A reranker of `provider`.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}
