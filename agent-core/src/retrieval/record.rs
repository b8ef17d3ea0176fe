//! What is kept, and what its vectors are.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    embed::EmbedderInfo,
    error::{Error, Result},
};

/// A text with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Unique in its collection.
    pub id: String,
    /// What is found by its words.
    pub text: String,
    /// What filters look at.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What is found by its meaning, if that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
}

impl Record {
    /// A text of this id.
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

    /// Of several records with one id, the last: what a store keeps of a batch.
    pub fn last_of_each_id(records: Vec<Self>) -> Vec<Self> {
        let mut seen = HashSet::new();
        let mut kept: Vec<_> = records.into_iter().rev().filter(|record| seen.insert(record.id.clone())).collect();
        kept.reverse();
        kept
    }
}

/// A vector, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Vector {
    /// What made it, as [`Vector::new`] names it. Vectors of different embedders cannot be compared.
    pub embedder: String,
    /// Its numbers.
    pub values: Vec<f32>,
}

impl Vector {
    /// A vector that this embedder made. It is named `provider:model`.
    pub fn new(embedder: &EmbedderInfo, values: Vec<f32>) -> Self {
        Self::of(format!("{}:{}", embedder.provider, embedder.model), values)
    }

    /// A vector that the embedder of this name made.
    pub fn of(embedder: impl Into<String>, values: Vec<f32>) -> Self {
        Self { embedder: embedder.into(), values }
    }

    /// What vectors it can be compared with.
    pub fn space(&self) -> VectorSpace {
        VectorSpace { embedder: self.embedder.clone(), dimensions: self.values.len() }
    }

    /// True if it points anywhere: one of zeros alone is like no other.
    pub fn has_direction(&self) -> bool {
        self.values.iter().any(|value| *value != 0.0)
    }

    /// Refuses what cannot be compared with anything.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if it has no direction, or numbers that are none.
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

/// What vectors can be compared: those of one embedder, of one length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VectorSpace {
    /// What made them.
    pub embedder: String,
    /// How long they are.
    pub dimensions: usize,
}

impl VectorSpace {
    /// Vectors of this embedder, so long.
    pub fn new(embedder: impl Into<String>, dimensions: usize) -> Self {
        Self { embedder: embedder.into(), dimensions }
    }

    /// Refuses a vector that is not of this space, or of no use at all.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config), with both spaces.
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

    /// The space of a collection after these records were kept in it, where `known` was its space before.
    ///
    /// # Errors
    /// As [`admit`](Self::admit), for the first vector that is not of one space with the others.
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
