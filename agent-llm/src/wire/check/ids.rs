//! Repair of call ids: those of another provider may be too long, contain other characters, or not
//! be unique.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use agent_core::{AssistantMessage, Block, Message, message::Origin};
use sha2::{Digest, Sha256};

use super::{
    messages::Messages,
    rules::{IdRule, Length},
};
use crate::wire::json::knows;

/// Gives each call an id that the provider accepts, and its result the same id. The mapping is
/// deterministic.
pub(super) fn repair(messages: &mut Messages<'_>, origin: &Origin, rule: IdRule) {
    let most = if rule.unique { messages.len() } else { 0 };
    let (mut seen, mut renamed) = (HashSet::with_capacity(most), Vec::new());
    for at in 0..messages.len() {
        match messages.get(at) {
            Some(Message::Assistant(message)) => {
                renamed = rename(message, origin, rule, &mut seen);
                if !renamed.is_empty()
                    && let Some(message) = messages.assistant_mut(at)
                {
                    for block in message.blocks_mut() {
                        if let Block::ToolCall(call) = block
                            && let Some(id) = of(&renamed, &call.id)
                        {
                            call.id = id;
                        }
                    }
                }
            }
            Some(Message::Tool(result)) => {
                if let Some(id) = of(&renamed, result.call_id()) {
                    let named = result.clone().with_call_id(id);
                    messages.all_mut()[at] = Message::Tool(named);
                }
            }
            _ => {}
        }
    }
}

/// Returns the ids of a message's calls that must change, each with its replacement.
fn rename(
    message: &AssistantMessage,
    origin: &Origin,
    rule: IdRule,
    seen: &mut HashSet<Arc<str>>,
) -> Vec<(Arc<str>, Arc<str>)> {
    let is_own = message.raw().is_some_and(|raw| knows(origin, raw));
    let mut renamed = Vec::new();
    for call in message.calls() {
        let fitting = if is_own && !rule.own { Cow::Borrowed(&*call.id) } else { rule.fit(&call.id) };
        let mut id: Arc<str> = if *fitting == *call.id { call.id.clone() } else { fitting.as_ref().into() };
        if rule.unique {
            let mut nth = 2;
            while !seen.insert(id.clone()) {
                id = rule.fit(&format!("{}_{nth}", call.id)).as_ref().into();
                nth += 1;
            }
        }
        if id != call.id {
            renamed.push((call.id.clone(), id));
        }
    }
    renamed
}

fn of(renamed: &[(Arc<str>, Arc<str>)], id: &str) -> Option<Arc<str>> {
    renamed.iter().find(|(old, _)| **old == *id).map(|(_, new)| new.clone())
}

impl IdRule {
    /// Maps the id to one that the provider accepts.
    fn fit(self, id: &str) -> Cow<'_, str> {
        let plain = if self.plain { plain_id(id) } else { Cow::Borrowed(id) };
        match self.length {
            Length::Exactly(length) => short_id(id, length),
            Length::Most(most) if plain.len() > most => hex(id, most).into(),
            _ => plain,
        }
    }
}

fn hex(id: &str, length: usize) -> String {
    let digits: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
    digits.chars().take(length).collect()
}

/// Maps an id to letters, digits, `_` and `-`. Other characters are escaped by their bytes, so that
/// distinct ids stay distinct.
fn plain_id(id: &str) -> Cow<'_, str> {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(is_taken) {
        return Cow::Borrowed(id);
    }
    let mut mapped = String::from("id_");
    for byte in id.bytes() {
        if is_taken(byte) {
            mapped.push(char::from(byte));
        } else {
            mapped += &format!("_{byte:02x}");
        }
    }
    Cow::Owned(mapped)
}

/// Maps an id to exactly `length` letters and digits, at most 32. The mapping is deterministic, and
/// collisions are as rare as that length permits.
fn short_id(id: &str, length: usize) -> Cow<'_, str> {
    const TAKEN: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == length && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let digest = Sha256::digest(id);
    Cow::Owned(digest.iter().take(length).map(|byte| char::from(TAKEN[usize::from(*byte) % TAKEN.len()])).collect())
}
