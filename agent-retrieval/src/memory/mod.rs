//! Application data besides the journal: conversations by chat id ([`ChatMessageStore`]), and
//! searchable memories ([`MemoryStore`]). Store authors implement these traits; a [`Filter`]
//! restricts a search.
//!
//! ```
//! use agent_retrieval::memory::{Filter, Memory, MemoryQuery};
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
