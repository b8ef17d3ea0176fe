//! Texts that are found by their words and their meaning: implementations of
//! [`VectorStore`](agent_core::retrieval::VectorStore).

mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::in_memory::InMemoryVectorStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteVectorStore;
