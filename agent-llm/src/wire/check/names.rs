//! Repair of tool names in the conversation: a model may have invented a name that no provider
//! accepts.

use agent_core::{Block, Message, ToolMessage, ToolSpec};

use super::messages::Messages;
use crate::wire::ids::NAMELESS;

/// Maximum length of a name. OpenAI, Anthropic, Google and AWS document `^[a-zA-Z0-9_-]{1,64}$`
/// (API references, 2026-11; Anthropic's newest models accept 128 characters).
const LONGEST: usize = 64;

/// Gives every call, and its result, a name that providers accept. Names of tools on offer are
/// unchanged.
pub(super) fn repair(messages: &mut Messages<'_>, tools: &[ToolSpec]) {
    let stays = |name: &str| is_taken(name) || tools.iter().any(|spec| spec.name == name);
    for at in 0..messages.len() {
        match messages.get(at) {
            Some(Message::Assistant(message)) if message.calls().any(|call| !stays(&call.name)) => {
                let blocks = messages.assistant_mut(at).map(|message| message.blocks_mut().iter_mut());
                for block in blocks.into_iter().flatten() {
                    if let Block::ToolCall(call) = block
                        && !stays(&call.name)
                    {
                        call.name = plain(&call.name).into();
                    }
                }
            }
            Some(Message::Tool(result)) if !stays(result.name()) => {
                let named = ToolMessage::new(
                    result.call_id(),
                    plain(result.name()),
                    result.parts().to_vec().into(),
                    result.is_error(),
                );
                messages.all_mut()[at] = Message::Tool(named);
            }
            _ => {}
        }
    }
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

pub(super) fn is_taken(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.chars().all(is_allowed)
}

/// Replaces each invalid character with `_`, and truncates the name to the maximum length.
pub(super) fn plain(name: &str) -> String {
    let plain: String = name.chars().take(LONGEST).map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if plain.is_empty() { NAMELESS.to_owned() } else { plain }
}
