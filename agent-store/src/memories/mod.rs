//! Searchable texts: implementations of [`MemoryStore`](agent_retrieval::memory::MemoryStore).

mod hybrid;
mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use self::hybrid::HybridMemoryStore;
pub use self::in_memory::InMemoryMemoryStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteMemoryStore;
