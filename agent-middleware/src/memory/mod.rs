//! Memory of earlier runs, and knowledge from documents.
//!
//! [`ChatHistory`] stores whole conversations, [`LongTermMemory`] the facts worth remembering;
//! [`Knowledge`] retrieves document passages. The stores are in `agent-store`. This module contains
//! their settings: the scope of memories ([`MemoryScope`]) and the memories to store of a run
//! ([`KeepOfRun`]).
//!
//! ```
//! use agent_middleware::{LongTermMemory, memory::MemoryScope};
//! use agent_store::InMemoryMemoryStore;
//!
//! let memory = LongTermMemory::new(InMemoryMemoryStore::default()).user("ada").scope(MemoryScope::Session);
//! # drop(memory);
//! ```

mod chat_history;
mod knowledge;
mod long_term_memory;

pub use self::{
    chat_history::{ChatHistory, ChatHistoryConfig},
    knowledge::{Knowledge, KnowledgeConfig},
    long_term_memory::{KeepOfRun, LongTermMemory, LongTermMemoryConfig, MemoryScope},
};
