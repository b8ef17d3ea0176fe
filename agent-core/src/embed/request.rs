//! What an embedder is asked, and what it answers.

use serde::{Deserialize, Serialize};

use crate::model::Usage;

/// Texts whose vectors are wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedRequest {
    /// The texts.
    pub texts: Vec<String>,
    /// What the vectors are for.
    pub purpose: EmbedPurpose,
    /// How long the vectors are to be; the embedder's own length if unset.
    pub dimensions: Option<usize>,
}

impl EmbedRequest {
    /// Asks for vectors that are kept, to be found.
    pub fn documents(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { texts: texts.into_iter().map(Into::into).collect(), purpose: EmbedPurpose::Document, dimensions: None }
    }

    /// Asks for the vector that documents are to be found by.
    pub fn query(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], purpose: EmbedPurpose::Query, dimensions: None }
    }

    /// Says what the vectors are for.
    #[must_use]
    pub fn purpose(mut self, purpose: EmbedPurpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// Says how long the vectors are to be.
    #[must_use]
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.dimensions = Some(dimensions);
        self
    }
}

/// What vectors are for. Some models make other vectors of questions than of what answers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EmbedPurpose {
    /// They are kept, to be found.
    #[default]
    Document,
    /// Documents are to be found by it.
    Query,
    /// Texts are compared with each other.
    Similarity,
    /// Texts are sorted into groups that are known.
    Classification,
    /// Groups of texts are looked for.
    Clustering,
}

/// Vectors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedResponse {
    /// One per text of the request, in its order.
    pub vectors: Vec<Vec<f32>>,
    /// What the calls used.
    pub usage: Usage,
}

impl EmbedResponse {
    /// An answer.
    pub fn new(vectors: Vec<Vec<f32>>, usage: Usage) -> Self {
        Self { vectors, usage }
    }
}
