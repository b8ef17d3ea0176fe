//! [`Embedder`].

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{EmbedRequest, EmbedResponse};
use agent_core::Result;

/// Embedding model: converts texts to vectors, such that texts with similar meaning have similar
/// vectors.
///
/// Only vectors of the same embedder and length are comparable.
#[async_trait]
pub trait Embedder: Send + Sync + 'static {
    /// Returns the embedder's provider, model and default dimensions.
    fn info(&self) -> EmbedderInfo;

    /// Returns one vector per text, in the order of the texts. Accepts any number of texts: an
    /// embedder makes as many calls as its provider requires.
    ///
    /// # Errors
    /// Those of the provider. A response with more or fewer vectors than texts is a
    /// [`Protocol`](agent_core::ErrorKind::Protocol) error, so that a vector never belongs to another
    /// text.
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

/// Identity of an embedder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedderInfo {
    /// Name of the provider.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// Default length of its vectors; unset if it is known only from a response.
    pub dimensions: Option<usize>,
}

impl EmbedderInfo {
    /// Creates the info of an embedder of `provider`.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into(), dimensions: None }
    }

    /// Sets the default length of its vectors.
    #[must_use]
    pub fn with_dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }
}
