//! What a run knows of earlier ones, and of documents.
//!
//! [`ChatHistory`] keeps whole conversations, [`LongTermMemory`] what is worth remembering of them; [`Knowledge`] looks up what documents
//! say. The stores are in `agent-store`. Here is how they are set up: whose memories they are ([`MemoryScope`]) and what of a run is kept ([`KeepOfRun`]).
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
