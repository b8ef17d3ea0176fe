//! Chat stores: implementations of [`ChatMessageStore`](agent_retrieval::memory::ChatMessageStore).

mod in_memory;
#[cfg(feature = "sqlite")]
mod sqlite;

use agent_core::Message;
use agent_retrieval::memory::{ChatMessage, RoundCounter};

pub use self::in_memory::InMemoryChatMessageStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteChatMessageStore;

/// A message with its id and round.
struct Numbered {
    id: String,
    round: u64,
    /// True if the next message is in the same round.
    open: bool,
    message: Message,
}

/// Assigns ids and rounds to new messages; skips messages that are already stored or filtered out.
fn number<E>(
    messages: Vec<ChatMessage>,
    keep_system: bool,
    mut next: u64,
    mut rounds: RoundCounter,
    mut is_known: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Vec<Numbered>, E> {
    let mut new: Vec<Numbered> = Vec::new();
    for ChatMessage { id, message, .. } in messages {
        if !keep_system && matches!(message, Message::System(_)) {
            continue;
        }
        let mut taken = |id: &str| Ok(new.iter().any(|earlier| earlier.id == id) || is_known(id)?);
        let id = match id {
            Some(id) if taken(&id)? => continue,
            Some(id) => id,
            None => loop {
                let id = next.to_string();
                next += 1;
                if !taken(&id)? {
                    break id;
                }
            },
        };
        let round = rounds.number(&message);
        new.push(Numbered { id, round, open: rounds.is_open(), message });
    }
    Ok(new)
}
