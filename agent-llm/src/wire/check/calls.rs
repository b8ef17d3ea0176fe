//! Repair of call arguments in the conversation: servers that render them with a template reject
//! everything but objects.

use std::borrow::Cow;

use agent_core::{Block, Message, message::Origin};
use serde_json::{Map, Value};

use super::messages::Messages;
use crate::wire::{json::own, surrogates::mend_surrogates};

/// Rewrites arguments that are not a JSON object. Calls in the provider's own JSON are unchanged.
pub(super) fn repair(messages: &mut Messages<'_>, origin: &Origin) {
    for at in 0..messages.len() {
        let Some(Message::Assistant(message)) = messages.get(at) else { continue };
        let is_own = own(origin, message.raw()).is_some();
        if is_own || message.calls().all(|call| object_of(&call.arguments).is_none()) {
            continue;
        }
        let blocks = messages.assistant_mut(at).map(|message| message.blocks_mut().iter_mut());
        for block in blocks.into_iter().flatten() {
            if let Block::ToolCall(call) = block
                && own(origin, call.raw.as_ref()).is_none()
                && let Some(object) = object_of(&call.arguments)
            {
                call.arguments = object;
            }
        }
    }
}

/// Returns the object that invalid arguments stand for; `None` if they are an object already, or
/// have no obvious interpretation, which each wire encodes in its own way.
fn object_of(arguments: &str) -> Option<String> {
    let said = arguments.trim_start();
    if said.is_empty() {
        return None;
    }
    if said.starts_with('{') {
        // Half a surrogate pair is no JSON for strict parsers.
        return match mend_surrogates(said) {
            Cow::Owned(mended) => Some(mended),
            Cow::Borrowed(_) => None,
        };
    }
    match serde_json::from_str(said).ok()? {
        Value::Null => Some("{}".to_owned()),
        Value::Array(items) if items.is_empty() => Some("{}".to_owned()),
        // Arguments that were encoded twice.
        Value::String(inner) if serde_json::from_str::<Map<String, Value>>(&inner).is_ok() => Some(inner),
        _ => None,
    }
}
