//! Filters of the history that an agent sees after a transfer.

use std::sync::Arc;

use agent_core::{AssistantMessage, Block, History, Message, Result};

/// Maps the conversation before a transfer, which ends with the transfer's call and result, to what
/// the next agent's model sees of it.
pub type HistoryFilter = Arc<dyn Fn(&History) -> Result<History> + Send + Sync>;

/// Filter that drops tool calls and their results, and keeps the texts of users and agents.
///
/// # Errors
/// None for a valid history.
pub fn without_tools(history: &History) -> Result<History> {
    History::from_messages(history.iter().filter_map(|message| match message {
        Message::Tool(_) => None,
        Message::Assistant(said) if said.has_calls() => {
            let texts: Vec<Block> =
                said.blocks().iter().filter(|block| matches!(block, Block::Text(_))).cloned().collect();
            (!texts.is_empty()).then(|| Message::Assistant(AssistantMessage::new(texts)))
        }
        other => Some(other.clone()),
    }))
}

/// Filter that keeps the newest messages, at most `most`, and drops tool calls that would be without
/// results and results without calls.
pub fn last_messages(most: usize) -> impl Fn(&History) -> Result<History> + Send + Sync + 'static {
    move |history| {
        let skip = history.len().saturating_sub(most);
        Ok(History::import(history.iter().skip(skip).cloned()).0)
    }
}
