//! Vector stores: implementations of [`VectorStore`](agent_retrieval::retrieval::VectorStore) with
//! full-text and vector search.

mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::in_memory::InMemoryVectorStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteVectorStore;
