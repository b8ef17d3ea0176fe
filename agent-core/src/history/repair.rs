//! Repair of external conversations, with a report.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use crate::message::{AssistantMessage, Block, Message, ToolMessage};

/// One repair made by [`History::import`](crate::History::import).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// A result answered no open call and was dropped.
    OrphanResult {
        /// Call id of the result.
        call_id: String,
    },
    /// A call had no result; an error result was inserted.
    MissingResult {
        /// Id of the call.
        call_id: String,
    },
    /// Results were in another order than their calls.
    Reordered,
    /// Two calls of one message shared an id; the later one and its result were renamed.
    DuplicateId {
        /// The shared id.
        from: String,
        /// The new id.
        to: String,
    },
    /// An empty assistant message was dropped.
    EmptyMessage,
}

/// Error result of a call that was begun and has no result: whether it had its effect is unknown.
pub const UNKNOWN_OUTCOME: &str =
    "An earlier attempt at this call was cut off. It is not known whether it happened, and it was not repeated.";

/// Error result of a call that ran and whose result no hook has released: it may contain what hooks
/// remove.
pub const RESULT_LOST: &str =
    "The call ran, but the run was cut off before its result was released. It was not repeated.";

/// Error result of a call for which the history has no result.
pub const NO_RESULT: &str = "No result was recorded: the call was interrupted.";

pub(super) fn repair(messages: impl IntoIterator<Item = Message>) -> (Vec<Message>, Vec<Repair>) {
    let (mut out, mut repairs) = (Vec::new(), Vec::new());
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::Assistant(m) if m.is_empty() => repairs.push(Repair::EmptyMessage),
            Message::Assistant(m) if m.has_calls() => {
                let mut results = VecDeque::new();
                while let Some(Message::Tool(result)) = messages.next_if(|m| matches!(m, Message::Tool(_))) {
                    results.push_back(result);
                }
                turn(m, results, &mut out, &mut repairs);
            }
            Message::Tool(orphan) => repairs.push(Repair::OrphanResult { call_id: orphan.call_id().to_owned() }),
            other => out.push(other),
        }
    }
    (out, repairs)
}

fn turn(
    mut message: AssistantMessage,
    mut results: VecDeque<ToolMessage>,
    out: &mut Vec<Message>,
    repairs: &mut Vec<Repair>,
) {
    let original: Vec<Arc<str>> = message.calls().map(|c| c.id.clone()).collect();
    let renamed = unique_ids(&mut message);
    repairs.extend(renamed.iter().map(|(from, to)| Repair::DuplicateId { from: from.to_string(), to: to.to_string() }));
    let mut answers = Vec::with_capacity(original.len());
    let mut reordered = false;
    for (call, wanted) in message.calls().zip(&original) {
        match results.iter().position(|r| *r.call_id() == **wanted) {
            Some(at) => {
                reordered |= at > 0;
                let result = results.remove(at).into_iter();
                answers.extend(result.map(|r| if call.id == *wanted { r } else { r.with_call_id(call.id.clone()) }));
            }
            None => {
                repairs.push(Repair::MissingResult { call_id: call.id.to_string() });
                answers.push(ToolMessage::text(call.id.clone(), call.name.clone(), NO_RESULT, true));
            }
        }
    }
    if reordered {
        repairs.push(Repair::Reordered);
    }
    repairs.extend(results.iter().map(|r| Repair::OrphanResult { call_id: r.call_id().to_owned() }));
    out.push(Message::Assistant(message));
    out.extend(answers.into_iter().map(Message::Tool));
}

/// Renames duplicate and empty call ids; returns the old and new ids.
pub fn unique_ids(message: &mut AssistantMessage) -> Vec<(Arc<str>, Arc<str>)> {
    if first_duplicate(message).is_none() {
        return Vec::new();
    }
    let mut taken: BTreeSet<Arc<str>> = message.calls().map(|c| c.id.clone()).collect();
    let (mut seen, mut renamed) = (BTreeSet::new(), Vec::new());
    for block in message.blocks_mut() {
        let Block::ToolCall(call) = block else { continue };
        if !call.id.is_empty() && seen.insert(call.id.clone()) {
            continue;
        }
        let base = if call.id.is_empty() { "call" } else { &call.id };
        let fresh = (2..).map(|n| format!("{base}-{n}")).find(|id| !taken.contains(id.as_str()));
        let fresh: Arc<str> = fresh.unwrap_or_default().into();
        taken.insert(fresh.clone());
        seen.insert(fresh.clone());
        call.raw = None; // it contains the old id
        renamed.push((std::mem::replace(&mut call.id, fresh.clone()), fresh));
    }
    renamed
}

/// Returns an id that two calls share, or the empty id.
pub(super) fn first_duplicate(message: &AssistantMessage) -> Option<&str> {
    /// Up to this number, comparing all pairs is faster than a set.
    const FEW: usize = 8;
    let ids = || message.calls().map(|c| &*c.id);
    if message.blocks().len() <= FEW {
        return ids().enumerate().find(|(at, id)| id.is_empty() || ids().take(*at).any(|e| e == *id)).map(|(_, id)| id);
    }
    let mut seen = BTreeSet::new();
    ids().find(|id| id.is_empty() || !seen.insert(*id))
}
