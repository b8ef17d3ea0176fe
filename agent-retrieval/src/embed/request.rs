//! Requests and responses of embedders.

use serde::{Deserialize, Serialize};

use agent_core::model::Usage;

/// Texts to embed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedRequest {
    /// The texts.
    pub texts: Vec<String>,
    /// Purpose of the vectors.
    pub purpose: EmbedPurpose,
    /// Length of the vectors. Default: the embedder's default.
    pub dimensions: Option<usize>,
}

impl EmbedRequest {
    /// Creates a request for vectors of documents to be searched.
    pub fn documents(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { texts: texts.into_iter().map(Into::into).collect(), purpose: EmbedPurpose::Document, dimensions: None }
    }

    /// Creates a request for the vector of a search query.
    pub fn query(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], purpose: EmbedPurpose::Query, dimensions: None }
    }

    /// Sets the purpose of the vectors.
    #[must_use]
    pub fn purpose(mut self, purpose: EmbedPurpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// Sets the length of the vectors.
    #[must_use]
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }
}

/// Purpose of vectors. Some models embed queries and documents differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EmbedPurpose {
    /// Documents to be searched.
    #[default]
    Document,
    /// A search query.
    Query,
    /// Comparison of texts with each other.
    Similarity,
    /// Classification into known classes.
    Classification,
    /// Clustering of texts.
    Clustering,
}

/// Embedded texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedResponse {
    /// One vector per text of the request, in order.
    pub vectors: Vec<Vec<f32>>,
    /// Usage of the calls.
    pub usage: Usage,
}

impl EmbedResponse {
    /// Creates a response.
    pub fn new(vectors: Vec<Vec<f32>>, usage: Usage) -> Self {
        Self { vectors, usage }
    }
}
