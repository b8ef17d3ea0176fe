//! Request repair after rejected reasoning.

use std::sync::Arc;

use agent_core::{Block, Error, ErrorKind, Message, ModelRequest};
use serde_json::Value;

use crate::wire::{claude::ClaudeThinking, content::EMPTY};

/// Returns `req` without reasoning, if `refused` says that the provider rejected the reasoning;
/// `None` if it has no reasoning, for example after an earlier repair.
pub(super) fn without_reasoning(req: &ModelRequest, refused: &Error, told: ClaudeThinking) -> Option<ModelRequest> {
    let is_refusal = refused.kind() == ErrorKind::InvalidRequest && is_about_reasoning(refused.message());
    if !is_refusal || !req.messages.iter().any(has_reasoning) {
        return None;
    }
    let mut amended = req.clone();
    amended.messages.edit(|messages| messages.iter_mut().for_each(strip)).ok()?;
    // A model with a thinking budget requires the thinking of a turn with calls: without it,
    // thinking must be disabled.
    let is_budget = |thinking: &Value| thinking["type"] == "enabled";
    if told == ClaudeThinking::Budget || req.params.extra.get("thinking").is_some_and(is_budget) {
        let params = Arc::make_mut(&mut amended.params);
        params.effort = None;
        params.extra.remove("thinking");
    }
    Some(amended)
}

/// Recognises the providers' messages: "Invalid `signature` in `thinking` block", "`thinking`
/// blocks in the latest assistant message cannot be modified", and the like.
fn is_about_reasoning(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("thinking")
        && ["signature", "`data`", "cannot be modified"].iter().any(|reason| message.contains(reason))
}

fn has_reasoning(message: &Message) -> bool {
    message.as_assistant().is_some_and(|m| m.blocks().iter().any(is_reasoning))
}

fn is_reasoning(block: &Block) -> bool {
    matches!(block, Block::Reasoning(_))
}

fn strip(message: &mut Message) {
    if let Message::Assistant(assistant) = message
        && assistant.blocks().iter().any(is_reasoning)
    {
        let blocks = assistant.blocks_mut();
        blocks.retain(|block| !is_reasoning(block));
        if blocks.is_empty() {
            blocks.push(Block::text(EMPTY));
        }
    }
}
