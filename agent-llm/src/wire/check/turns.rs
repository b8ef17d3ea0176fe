//! Repair of the order and content of messages.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, EventKind, Message, ModelRequest, ToolSpec, message::Origin, tool::ToolSpecs,
};
use serde_json::json;

use super::{Rules, messages::Messages, rules::Blanks};
use crate::wire::{content::EMPTY, json::knows};

/// Removes blank texts of the assistant.
pub(super) fn drop_blanks(messages: &mut Messages<'_>, rules: &Rules) {
    if rules.turns.blanks == Blanks::Taken {
        return;
    }
    for at in 0..messages.len() {
        let Some(Message::Assistant(message)) = messages.get(at) else { continue };
        let is_fine = rules.turns.blanks == Blanks::NotAlone && message.blocks().iter().any(is_said);
        if is_fine || !message.blocks().iter().any(is_blank) {
            continue;
        }
        if let Some(message) = messages.assistant_mut(at) {
            let blocks = message.blocks_mut();
            blocks.retain(|block| !is_blank(block));
            if blocks.is_empty() {
                blocks.push(Block::text(EMPTY));
            }
        }
    }
}

fn is_said(block: &Block) -> bool {
    matches!(block, Block::Text(_)) && !is_blank(block)
}

fn is_blank(block: &Block) -> bool {
    matches!(block, Block::Text(text) if text.text.trim().is_empty() && text.citations.is_empty())
}

/// Establishes the order of roles that the provider requires: begins with a user message, merges
/// consecutive user messages, and inserts an answer between results and the next user message.
pub(super) fn pair(messages: &mut Messages<'_>, rules: &Rules) {
    let role = |at: usize, messages: &Messages<'_>| messages.get(at).map(Message::role);
    if rules.turns.user_first && role(0, messages) == Some("assistant") {
        messages.all_mut().insert(0, Message::user(EMPTY));
    }
    let mut at = 1;
    while at < messages.len() {
        match (role(at - 1, messages), role(at, messages)) {
            (Some("user"), Some("user")) if rules.turns.alternate => {
                let all = messages.all_mut();
                let Message::User(next) = all.remove(at) else { continue };
                if let Some(Message::User(message)) = all.get_mut(at - 1) {
                    message.parts_mut().extend(next.parts().iter().cloned());
                }
            }
            (Some("tool"), Some("user")) if rules.turns.answer_after_results || rules.turns.alternate => {
                messages.all_mut().insert(at, Message::assistant(EMPTY));
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Returns tools for a conversation with calls whose request offers none, as some providers
/// require: the tools that were called.
pub(super) fn stand_in_tools(req: &ModelRequest, rules: &Rules) -> Option<ToolSpecs> {
    if !rules.turns.tools_with_calls || !req.tools.is_empty() || req.params.extra.contains_key("toolConfig") {
        return None;
    }
    let mut specs: Vec<ToolSpec> = Vec::new();
    for call in req.messages.iter().filter_map(Message::as_assistant).flat_map(AssistantMessage::calls) {
        let name = super::names::plain(&call.name);
        if specs.iter().all(|spec| spec.name != name) {
            let anything = json!({"type": "object", "properties": {}});
            specs.push(ToolSpec::new(name, "Not on offer any more: answer without it.", anything));
        }
    }
    (!specs.is_empty()).then(|| specs.into_iter().collect())
}

/// Returns the request without thinking, if the open turn has calls and does not begin with the
/// provider's own thinking, which models with a thinking budget reject. Returns `None` if the model
/// may think.
pub(in crate::wire) fn without_thinking(req: &ModelRequest, origin: &Origin) -> Option<ModelRequest> {
    let turn =
        req.messages.iter().rev().take_while(|message| matches!(message, Message::Assistant(_) | Message::Tool(_)));
    let lacks_thinking = |message: &AssistantMessage| {
        let is_own = message.raw().is_some_and(|raw| knows(origin, raw));
        let is_signed =
            |block: &Block| matches!(block, Block::Reasoning(r) if r.signature.is_some() || r.encrypted.is_some());
        message.has_calls() && !(is_own && message.blocks().first().is_some_and(is_signed))
    };
    let mut turn = turn.filter_map(Message::as_assistant);
    let is_open = req.messages.last().is_some_and(|last| last.as_tool().is_some());
    if !is_open || !turn.any(lacks_thinking) {
        return None;
    }
    let mut req = req.clone();
    let params = Arc::make_mut(&mut req.params);
    (params.effort, params.thinking_tokens) = (None, None);
    params.extra.remove("thinking");
    let message = "the model does not think in this call: the turn was begun by another model, or without thinking";
    req.cx.emit(EventKind::Warning { message: message.into() });
    Some(req)
}
