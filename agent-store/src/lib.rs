//! Durable journals for sessions that survive the process, and stores for further application data.
//!
//! * [`SqliteJournal`] (feature `sqlite`, on by default): journal in one SQLite file.
//! * [`PostgresJournal`] (feature `postgres`): journal in a PostgreSQL database, shared by
//!   processes on several machines.
//! * [`SqliteLedger`] and [`PostgresLedger`] (same features): budget accounts shared by several
//!   processes.
//! * [`MemoryQueue`] (feature `queue`) and [`PostgresQueue`] (feature `postgres`): run queues for
//!   workers. [`PostgresRelay`] (feature `postgres`): streaming from workers to servers.
//! * `conformance` (feature `testing`): test suite for every implementation of
//!   [`Journal`](agent_core::Journal), with suites for the other stores.
//! * [`InMemoryChatMessageStore`] and [`SqliteChatMessageStore`]: conversations by chat id.
//!   [`InMemoryMemoryStore`] and [`SqliteMemoryStore`]: searchable texts.
//! * [`InMemoryVectorStore`], [`SqliteVectorStore`] and [`PostgresVectorStore`]: texts with
//!   vectors, for full-text, vector and hybrid search. [`HybridMemoryStore`]: memories on top of
//!   one of them.
//!
//! ```
//! use agent_core::{Journal, Message, journal::{Entry, EntryBody}};
//! use agent_store::SqliteJournal;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let journal = SqliteJournal::open(dir.path().join("agent.db"))?;
//! let writer = journal.open("alice", "assistant").await?;
//! let body = EntryBody::MessageAppended { message: Message::user("hello") };
//! assert_eq!(writer.append(vec![Entry::new("run-1".into(), 0, body)]).await?, 1);
//! assert_eq!(journal.read("alice", 0, 10).await?.len(), 1);
//! # Ok(())
//! # }
//! ```

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod amounts;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod answer;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod batch;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod blob;
mod check;
#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "sqlite")]
mod database;
#[cfg(any(feature = "queue", feature = "sqlite"))]
mod depth;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod durability;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod encode;
mod erase;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod error;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod leases;
#[cfg(feature = "sqlite")]
mod ledger;
mod memories;
mod messages;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod prefix;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod project;
#[cfg(feature = "queue")]
mod queue;
mod retention;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod stats;
mod transfer;
mod vectors;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod writing;

#[cfg(feature = "postgres")]
pub use self::postgres::{
    PostgresBuilder, PostgresJournal, PostgresLedger, PostgresQueue, PostgresQueueBuilder, PostgresRelay,
    PostgresVectorStore,
};
#[cfg(feature = "queue")]
pub use self::queue::{MemoryQueue, QueueLimits};
pub use self::{
    check::{Problem, check},
    erase::{Erasure, Owner},
    retention::Retention,
    transfer::{export, import},
};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use self::{durability::Durability, stats::Stats};
#[cfg(feature = "sqlite")]
pub use self::{
    ledger::SqliteLedger,
    sqlite::{SqliteBuilder, SqliteJournal},
};
#[cfg(feature = "sqlite")]
pub use self::{memories::SqliteMemoryStore, messages::SqliteChatMessageStore, vectors::SqliteVectorStore};
pub use self::{
    memories::{HybridMemoryStore, InMemoryMemoryStore},
    messages::InMemoryChatMessageStore,
    vectors::InMemoryVectorStore,
};
