//! Records of vector stores, and their vectors.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::embed::EmbedderInfo;
use agent_core::error::{Error, Result};

/// A text with its id, metadata and vector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Id of the record, unique in its collection.
    pub id: String,
    /// Text, searched by words.
    pub text: String,
    /// Metadata for filters.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Vector, searched by similarity, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
}

impl Record {
    /// Creates a record with this id and text.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), ..Self::default() }
    }

    /// Adds a field to the metadata.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(field.into(), value.into());
        self
    }

    /// Sets the vector.
    #[must_use]
    pub fn vector(mut self, vector: Vector) -> Self {
        self.vector = Some(vector);
        self
    }

    /// Removes all but the last of the records that share an id, as a store must do with a batch.
    pub fn last_of_each_id(records: Vec<Self>) -> Vec<Self> {
        let mut seen = HashSet::new();
        let mut kept: Vec<_> = records.into_iter().rev().filter(|record| seen.insert(record.id.clone())).collect();
        kept.reverse();
        kept
    }
}

/// A vector and the embedder that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Vector {
    /// Name of the embedder, as in [`Vector::new`]. Vectors of different embedders are not
    /// comparable.
    pub embedder: String,
    /// Components of the vector.
    pub values: Vec<f32>,
}

impl Vector {
    /// Creates a vector of this embedder, whose name is `provider:model`.
    pub fn new(embedder: &EmbedderInfo, values: Vec<f32>) -> Self {
        Self::of(format!("{}:{}", embedder.provider, embedder.model), values)
    }

    /// Creates a vector of the embedder with this name.
    pub fn of(embedder: impl Into<String>, values: Vec<f32>) -> Self {
        Self { embedder: embedder.into(), values }
    }

    /// The space of vectors that are comparable with this one.
    pub fn space(&self) -> VectorSpace {
        VectorSpace { embedder: self.embedder.clone(), dimensions: self.values.len() }
    }

    /// True if the vector is not zero: a zero vector is similar to no other.
    pub fn has_direction(&self) -> bool {
        self.values.iter().any(|value| *value != 0.0)
    }

    /// Rejects a vector that is not comparable with any other.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if all components are zero, or one is
    /// infinite or NaN.
    pub fn check(&self) -> Result<()> {
        if !self.values.iter().all(|value| value.is_finite()) {
            return Err(Error::config("the vector has a number that is infinite or none: look at what made it"));
        }
        if !self.has_direction() {
            return Err(Error::config("the vector has no direction, since all its numbers are zero: leave it out"));
        }
        Ok(())
    }
}

/// Space of comparable vectors: one embedder and one length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VectorSpace {
    /// Name of the embedder.
    pub embedder: String,
    /// Length of the vectors.
    pub dimensions: usize,
}

impl VectorSpace {
    /// Creates the space of vectors of this embedder and length.
    pub fn new(embedder: impl Into<String>, dimensions: usize) -> Self {
        Self { embedder: embedder.into(), dimensions }
    }

    /// Rejects a vector that is not in this space, or that is not comparable at all.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config), with both spaces.
    pub fn admit(&self, vector: &Vector) -> Result<()> {
        vector.check()?;
        let other = vector.space();
        if other == *self {
            return Ok(());
        }
        let message = "the collection's vectors are of another embedder or length: use that one, or clear the collection and \
                       fill it anew";
        Err(Error::config(message)
            .with_context("collection", self.to_string())
            .with_context("vector", other.to_string()))
    }

    /// Returns the space of a collection after these records were stored in it; `known` was its
    /// space before.
    ///
    /// # Errors
    /// Those of [`admit`](Self::admit), for the first vector that is not in the same space.
    pub fn after(known: Option<Self>, records: &[Record]) -> Result<Option<Self>> {
        records.iter().filter_map(|record| record.vector.as_ref()).try_fold(known, |known, vector| {
            let space = known.unwrap_or_else(|| vector.space());
            space.admit(vector)?;
            Ok(Some(space))
        })
    }
}

impl std::fmt::Display for VectorSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} dimensions", self.embedder, self.dimensions)
    }
}
