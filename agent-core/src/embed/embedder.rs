//! [`Embedder`].

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{EmbedRequest, EmbedResponse};
use crate::error::Result;

/// Makes vectors of texts: texts that mean alike have vectors that point alike.
///
/// Only vectors of one embedder, of one length, can be compared.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// What it is.
    fn info(&self) -> EmbedderInfo;

    /// One vector per text, in the order of the texts. Any number of texts: an embedder makes as many calls as its provider needs.
    ///
    /// # Errors
    /// The provider's. A vector is never that of another text: an answer with more or fewer vectors than texts is a
    /// [`Protocol`](crate::ErrorKind::Protocol) error.
    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse>;
}

#[async_trait]
impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn info(&self) -> EmbedderInfo {
        (**self).info()
    }

    async fn embed(&self, req: EmbedRequest) -> Result<EmbedResponse> {
        (**self).embed(req).await
    }
}

/// What an embedder is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedderInfo {
    /// Who provides it.
    pub provider: String,
    /// Its model's name.
    pub model: String,
    /// How long its vectors are, if a request does not say; unset if that is known only from an answer.
    pub dimensions: Option<usize>,
}

impl EmbedderInfo {
    /// An embedder of `provider`.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into(), dimensions: None }
    }

    /// Says how long its vectors are.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }
}
