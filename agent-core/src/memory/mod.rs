//! What applications keep beside the journal: conversations by chat id, and memories that are searched.

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
