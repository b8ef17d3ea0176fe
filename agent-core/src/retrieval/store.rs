//! [`VectorStore`].

use std::sync::Arc;

use async_trait::async_trait;

use super::{Found, Record, VectorQuery, VectorSpace};
use crate::{error::Result, memory::Filter};

/// Keeps texts with their vectors, and finds those that fit a question: by their words, by their meaning, or by both.
///
/// Records live in collections, and every call names one: what is in another collection is neither found nor changed nor deleted.
/// An application whose tenants must not see each other gives each a collection. One that nothing was kept in is empty.
///
/// All vectors of a collection are of one embedder and of one length, its [space](Self::space): that of the first vector that it is
/// given. Until the collection is [cleared](Self::clear), vectors of another are refused, both to keep and to search by, since they
/// could be compared and would mean nothing. Records without a vector are found by their words.
///
/// The conformance suite of `agent-store` (feature `testing`) tells whether an implementation does what is said here.
#[async_trait]
pub trait VectorStore: Send + Sync + 'static {
    /// What the collection's vectors are; none before there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>>;

    /// Keeps records, all or none. One whose id is there already takes its place, and is the newest again; of several with one id, the
    /// last is kept.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a vector that is not of the collection's space, or
    /// [of no use](super::Vector::check); [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()>;

    /// The records of these ids, with their vectors, in the order of the ids; those that are not there are left out.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>>;

    /// The records that fit a query, best first, without their vectors.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a vector that is not of the collection's space, or
    /// [of no use](super::Vector::check); [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>>;

    /// Deletes the records of these ids, and tells how many there were.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails; nothing is then deleted.
    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize>;

    /// Deletes the records whose metadata meet a filter, and tells how many there were.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails; nothing is then deleted.
    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize>;

    /// Deletes all records of a collection and forgets its space, and tells how many there were.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails; nothing is then deleted.
    async fn clear(&self, collection: &str) -> Result<usize>;

    /// How many records meet a filter; all, without one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the store fails.
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
