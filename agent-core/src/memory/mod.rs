//! What applications keep beside the journal: conversations by chat id ([`ChatMessageStore`]), and memories that are searched
//! ([`MemoryStore`]). Authors of such stores implement the two; a [`Filter`] says what is looked at.
//!
//! ```
//! use agent_core::memory::{Filter, Memory, MemoryQuery};
//!
//! let query = MemoryQuery::new("what to eat").filter(Filter::eq("user", "ada")).top_k(3);
//! assert!(query.admits(&Memory::new("She likes figs.").with("user", "ada")));
//! assert!(!query.admits(&Memory::new("He likes dates.").with("user", "bob")));
//! ```

mod chat;
mod filter;
mod rounds;
mod store;

pub use self::{
    chat::{ChatMessage, ChatMessageStore, ChatQuery},
    filter::{Comparison, Filter},
    rounds::{RoundCounter, select_rounds},
    store::{Memory, MemoryQuery, MemoryStore, ScoredMemory},
};
