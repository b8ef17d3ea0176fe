//! From contents to the results of a turn.

use std::sync::Arc;

use agent_core::{AssistantMessage, Message, Part, ToolCall, ToolMessage, UserMessage};
use serde_json::value::RawValue;

use super::contents::Content;
use crate::wire::{
    gemini::{
        manner::Manner,
        part::{PartSaid, raw, user_part},
        speak::write_list,
        wrapper::Wrapper,
    },
    lenient::Str,
    open_struct::open_struct,
};

open_struct! {
    /// The result of a call.
    ResponseSaid {
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        response: &'a RawValue = "response",
        parts: Vec<&'a RawValue> = "parts",
    }
}

/// The results of a turn.
#[derive(Default)]
pub(super) struct Results {
    pub(super) messages: Vec<Message>,
    /// How many contents they are of.
    pub(super) contents: usize,
}

/// Reads the results of the calls in `turn` from the contents that follow it.
///
/// The JSON of a result is its part, or what [`Contents`](crate::wire::gemini::contents::Contents) makes more of it: a
/// content that is not as a turn's results usually are, or other parts before it. What follows the results in their content is
/// a user message that goes on with it.
pub(super) fn read(turn: &AssistantMessage, contents: &[Content<'_>], manner: &Manner) -> Results {
    let mut open: Vec<_> = turn.calls().enumerate().collect();
    let (mut results, mut more, mut read) = (Vec::new(), Vec::new(), 0);
    for content in contents {
        let Some(parts) = content.parts.as_ref().filter(|_| !open.is_empty()) else { break };
        let mut before: Vec<&RawValue> = Vec::new();
        let mut is_first = true;
        for part in &parts.items {
            before.push(part);
            let Some((at, call, said)) = answered(part, &mut open) else { continue };
            let is_plain = content.role == "user" && parts.fields.len() == 1 && results.is_empty();
            let json = match *before {
                _ if is_first && !is_plain => parts.with(&before),
                [only] => only.get().to_owned(),
                _ => write_list(&before),
            };
            results.push((at, message(call, &said, manner).with_raw(raw(&json, &manner.origin))));
            before.clear();
            is_first = false;
        }
        if is_first {
            break; // it answers nothing
        }
        read += 1;
        if !before.is_empty() {
            let parts = before.iter().map(|part| user_part(part, &manner.origin)).collect();
            let raw = raw(&write_list(&before), &manner.origin);
            more.push(Message::User(UserMessage::new(parts).with_raw(raw)));
        }
    }
    results.sort_by_key(|(at, _)| *at);
    let messages = results.into_iter().map(|(_, result)| Message::Tool(result)).chain(more).collect();
    Results { messages, contents: read }
}

/// The open call that `part` answers, with its place: the one of its id, else the first of its name.
fn answered<'a, 't>(
    part: &'a RawValue,
    open: &mut Vec<(usize, &'t ToolCall)>,
) -> Option<(usize, &'t ToolCall, ResponseSaid<'a>)> {
    let said: ResponseSaid<'a> = serde_json::from_str(PartSaid::read(part.get())?.response?.get()).ok()?;
    let same = |call: &Arc<str>, said: &Option<Str<'_>>| said.as_ref().is_some_and(|said| *said.0 == **call);
    let at = open
        .iter()
        .position(|(_, call)| same(&call.id, &said.id))
        .or_else(|| open.iter().position(|(_, call)| same(&call.name, &said.name)))?;
    let (at, call) = open.remove(at);
    Some((at, call, said))
}

fn message(call: &ToolCall, said: &ResponseSaid<'_>, manner: &Manner) -> ToolMessage {
    let (text, is_error) = said.response.map(|json| text(json.get())).unwrap_or_default();
    let media = said.parts.iter().flatten().map(|part| user_part(part, &manner.origin));
    let parts = [Part::text(text)].into_iter().chain(media).collect();
    ToolMessage::new(call.id.clone(), call.name.clone(), Arc::new(parts), is_error)
}

/// The text of a result, and whether the call failed.
fn text(response: &str) -> (String, bool) {
    let only = |name| {
        let held = Wrapper::fields(response)?;
        let text = held.get(name).filter(|_| held.len() == 1)?;
        serde_json::from_str::<Str<'_>>(text.get()).ok().map(|text| text.0.into_owned())
    };
    match (only("error"), only("result")) {
        (Some(error), _) => (error, true),
        (_, Some(text)) => (text, false),
        _ => (response.to_owned(), false),
    }
}
