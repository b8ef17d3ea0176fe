//! Stores of vectors by their address, opened when they are first needed.

use std::sync::Arc;

use agent_core::{Result, async_trait};
use agent_retrieval::{
    memory::Filter,
    retrieval::{Found, Record, VectorQuery, VectorSpace, VectorStore},
};
use agent_store::InMemoryVectorStore;
use agent_tools::retrieval::Retriever;
use tokio::sync::OnceCell;

use super::library::Documents;
use crate::config::StoreAddress;

/// Makes a retriever over an opened store.
type Indexer = Box<dyn Fn(Arc<dyn VectorStore>) -> Retriever + Send + Sync>;

/// A store of vectors that is opened, and filled with its documents, when it is first needed: an agent is built without I/O.
pub(in crate::config) struct Vectors {
    address: StoreAddress,
    /// Documents to index before the first search, and the indexer.
    documents: Option<(Documents, Indexer)>,
    opened: OnceCell<Arc<dyn VectorStore>>,
}

impl Vectors {
    pub(in crate::config) fn at(address: StoreAddress) -> Self {
        Self { address, documents: None, opened: OnceCell::new() }
    }

    /// Sets what is indexed in the opened store by a retriever over it.
    pub(super) fn filled(
        mut self,
        documents: Documents,
        retriever: impl Fn(Arc<dyn VectorStore>) -> Retriever + Send + Sync + 'static,
    ) -> Self {
        self.documents = Some((documents, Box::new(retriever)));
        self
    }

    async fn open(&self) -> Result<&Arc<dyn VectorStore>> {
        let open = async || {
            let store: Arc<dyn VectorStore> = match &self.address {
                StoreAddress::Memory => Arc::new(InMemoryVectorStore::default()),
                #[cfg(feature = "sqlite")]
                StoreAddress::Sqlite(path) => Arc::new(agent_store::SqliteVectorStore::open(path)?),
                #[cfg(feature = "postgres")]
                StoreAddress::Postgres(url) => Arc::new(agent_store::PostgresVectorStore::connect(url).await?),
                #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
                _ => return Err(self.address.off()),
            };
            if let Some((documents, retriever)) = &self.documents {
                retriever(store.clone()).index(documents.read().await?).await?;
            }
            Ok(store)
        };
        self.opened.get_or_try_init(open).await
    }
}

#[async_trait]
impl VectorStore for Vectors {
    async fn space(&self, collection: &str) -> Result<Option<VectorSpace>> {
        self.open().await?.space(collection).await
    }

    async fn upsert(&self, collection: &str, records: Vec<Record>) -> Result<()> {
        self.open().await?.upsert(collection, records).await
    }

    async fn get(&self, collection: &str, ids: &[String]) -> Result<Vec<Record>> {
        self.open().await?.get(collection, ids).await
    }

    async fn search(&self, collection: &str, query: &VectorQuery) -> Result<Vec<Found>> {
        self.open().await?.search(collection, query).await
    }

    async fn delete(&self, collection: &str, ids: &[String]) -> Result<usize> {
        self.open().await?.delete(collection, ids).await
    }

    async fn delete_where(&self, collection: &str, filter: &Filter) -> Result<usize> {
        self.open().await?.delete_where(collection, filter).await
    }

    async fn clear(&self, collection: &str) -> Result<usize> {
        self.open().await?.clear(collection).await
    }

    async fn count(&self, collection: &str, filter: Option<&Filter>) -> Result<usize> {
        self.open().await?.count(collection, filter).await
    }
}
