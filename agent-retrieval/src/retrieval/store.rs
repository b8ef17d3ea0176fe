//! [`VectorStore`].

use std::sync::Arc;

use async_trait::async_trait;

use super::{Found, Record, VectorQuery, VectorSpace};
use crate::memory::Filter;
use agent_core::error::Result;

/// Store of texts with vectors, searchable by words, by meaning, or by both.
///
/// Records are stored in collections, and every call names one; other collections are not affected.
/// An application isolates tenants by giving each a collection. A collection that was never written
/// to is empty.
///
/// All vectors of a collection have the same embedder and length, its [space](Self::space), which
/// its first vector determines. Until the collection is [cleared](Self::clear), vectors of another
/// space are rejected, for storing and for searching, since comparing them would be meaningless.
/// Records without a vector are found by their words.
///
/// The conformance suite of `agent-store` (feature `testing`) checks an implementation.
#[async_trait]
pub trait VectorStore: Send + Sync + 'static {
    /// Returns the space of the collection's vectors; `None` before there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>>;

    /// Stores records atomically. A record replaces one with the same id, and counts as the newest
    /// again; of several with one id, the last is stored.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a vector that is not in the collection's
    /// space, or that is [not comparable](super::Vector::check);
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()>;

    /// Returns the records with these ids, with their vectors, in the order of the ids; missing
    /// ones are omitted.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>>;

    /// Returns the records that match a query, best first, without their vectors.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for a vector that is not in the collection's
    /// space, or that is [not comparable](super::Vector::check);
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>>;

    /// Deletes the records with these ids. Returns the number of deleted records.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails; nothing is then deleted.
    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize>;

    /// Deletes the records whose metadata match a filter. Returns the number of deleted records.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails; nothing is then deleted.
    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize>;

    /// Deletes all records and the space of a collection. Returns the number of deleted records.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails; nothing is then deleted.
    async fn clear(&self, collection: &str) -> Result<usize>;

    /// Returns the number of records that match a filter, or of all records without one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](agent_core::ErrorKind::Store) if the store fails.
    async fn count(&self, collection: &str, filter: Option<&Filter>) -> Result<usize>;
}

#[async_trait]
impl<S: VectorStore + ?Sized> VectorStore for Arc<S> {
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>> {
        (**self).space(collection).await
    }

    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()> {
        (**self).upsert(collection, records).await
    }

    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>> {
        (**self).get(collection, ids).await
    }

    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>> {
        (**self).search(collection, query).await
    }

    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize> {
        (**self).delete(collection, ids).await
    }

    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize> {
        (**self).delete_where(collection, filter).await
    }

    async fn clear(&self, collection: &str) -> Result<usize> {
        (**self).clear(collection).await
    }

    async fn count(&self, collection: &str, filter: Option<&Filter>) -> Result<usize> {
        (**self).count(collection, filter).await
    }
}
