//! Durable journals: sessions that survive the process.
//!
//! * [`SqliteJournal`] (feature `sqlite`, on by default) keeps them in one SQLite file.
//! * [`SqliteLedger`] (the same feature) keeps the accounts of budgets that processes share.
//! * [`conformance`] (feature `testing`) is the suite that every [`Journal`](agent_core::Journal) passes: for authors of
//!   others.
//!
//! ```
//! use agent_core::{Entry, EntryBody, Journal, Message};
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

#[cfg(feature = "testing")]
pub mod conformance;
#[cfg(feature = "sqlite")]
mod ledger;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use self::ledger::SqliteLedger;
#[cfg(feature = "sqlite")]
pub use self::sqlite::{Durability, SqliteBuilder, SqliteJournal, Stats};
