//! Decoding of contents into messages.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Message, Part, SystemMessage, ToolCall, ToolMessage, UserMessage,
    message::{Origin, Raw},
};
use serde::Serialize;
use serde_json::{
    Map,
    value::{RawValue, to_raw_value},
};

use super::{
    fold::Fold,
    messages::PARTS,
    read::{PartSaid, user_parts},
    wrapper::{Fields, Wrapper},
};
use crate::wire::{json::raw, lenient::Str, open_struct::open_struct};

/// A content, with its own JSON.
struct Content<'a> {
    json: &'a RawValue,
    role: String,
    /// `None` if its parts are not a list.
    parts: Option<Wrapper<'a>>,
}

impl<'a> Content<'a> {
    fn read(json: &'a RawValue) -> Option<Self> {
        let fields: Fields<'_> = serde_json::from_str(json.get()).ok()?;
        let role = fields.get("role").and_then(|role| serde_json::from_str(role.get()).ok()).unwrap_or_default();
        Some(Self { json, role, parts: Wrapper::read(json, &PARTS) })
    }

    fn is_model(&self) -> bool {
        self.role == "model"
    }

    fn items(&self) -> &[&'a RawValue] {
        self.parts.as_ref().map_or(&[], |parts| &parts.items)
    }
}

/// Decodes the messages of a conversation; `None` if the JSON is not a list of contents.
///
/// Consecutive contents of the model are one message, since the results of all their calls follow
/// the last.
pub(super) fn read(contents: &RawValue, origin: &Origin) -> Option<Vec<Message>> {
    let contents: Vec<&RawValue> = serde_json::from_str(contents.get()).ok()?;
    let contents: Vec<_> = contents.into_iter().map(Content::read).collect::<Option<_>>()?;
    let (mut messages, mut rest) = (Vec::new(), &contents[..]);
    while let Some(first) = rest.first() {
        let (turn, after) = rest.split_at(rest.iter().take_while(|content| content.is_model()).count());
        if turn.is_empty() {
            messages.push(spoken(first, origin));
            rest = &rest[1..];
        } else {
            let message = assistant(turn, contents.len() - rest.len(), origin);
            let (results, answering) = results(&message, after, origin);
            rest = &after[answering..];
            messages.push(Message::Assistant(message));
            messages.extend(results);
        }
    }
    Some(messages)
}

/// Decodes the model's contents; `at` is the index of the first, for generated call ids.
fn assistant(contents: &[Content<'_>], at: usize, origin: &Origin) -> AssistantMessage {
    let (mut fold, mut nobody) = (Fold::new(origin.clone(), false), Vec::new());
    for content in contents {
        fold.cut(&mut nobody);
        content.items().iter().for_each(|part| fold.push(part, &at.to_string(), &mut nobody));
    }
    let mut blocks = fold.finish(&Map::new(), &mut nobody);
    if blocks.is_empty() {
        blocks.push(Block::Other(list::<()>(&[], origin))); // an empty turn is kept
    }
    let json: Vec<_> = contents.iter().map(|content| content.json).collect();
    AssistantMessage::from_provider(blocks, one_or_list(&json, origin))
}

/// Decodes a content of another role. A missing role means the user.
fn spoken(content: &Content<'_>, origin: &Origin) -> Message {
    let (parts, raw) = (user_parts(content.items(), origin), raw(content.json, origin));
    match content.role.as_str() {
        "system" => Message::System(SystemMessage::new(parts).with_raw(raw)),
        _ => Message::User(UserMessage::new(parts).with_raw(raw)),
    }
}

open_struct! {
    /// The result of a call.
    ResponseSaid {
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        response: &'a RawValue = "response",
        parts: Vec<&'a RawValue> = "parts",
    }
}

/// Decodes the results of the calls in `turn` from the contents that follow it; returns them with
/// the number of these contents.
///
/// The JSON of a result is its part, or more if [`Messages`](super::messages::Messages) requires
/// it: a content that differs from the usual form of results, or other parts before it. Content
/// after the results becomes a user message that continues the same content.
fn results(turn: &AssistantMessage, contents: &[Content<'_>], origin: &Origin) -> (Vec<Message>, usize) {
    let mut open: Vec<_> = turn.calls().enumerate().collect();
    let (mut results, mut more, mut read) = (Vec::new(), Vec::new(), 0);
    for content in contents {
        let Some(parts) = content.parts.as_ref().filter(|_| !open.is_empty()) else { break };
        let is_plain = content.role == "user" && parts.fields.len() == 1 && results.is_empty();
        let (mut before, known) = (Vec::new(), results.len());
        let answers_all = parts.items.iter().filter(|part| response(part).is_some()).count() == open.len();
        for part in &parts.items {
            before.push(*part);
            let Some((at, call, said)) = answered(part, &mut open, answers_all) else { continue };
            let json = match results.len() == known && !is_plain {
                true => Raw::new(origin.clone(), parts.with(&before)),
                false => one_or_list(&before, origin),
            };
            results.push((at, result(call, &said, origin).with_raw(json)));
            before.clear();
        }
        if results.len() == known {
            break; // it answers no call
        }
        read += 1;
        if !before.is_empty() {
            let said = UserMessage::new(user_parts(&before, origin));
            more.push(Message::User(said.with_raw(list(&before, origin))));
        }
    }
    results.sort_by_key(|(at, _)| *at);
    (results.into_iter().map(|(_, result)| Message::Tool(result)).chain(more).collect(), read)
}

fn response(part: &RawValue) -> Option<ResponseSaid<'_>> {
    serde_json::from_str(PartSaid::read(part)?.response?.get()).ok()
}

/// Returns the open call that `part` answers, with its index: the one with its id, else the first
/// of its name; else, if the content answers all open calls, the first.
fn answered<'a, 't>(
    part: &'a RawValue,
    open: &mut Vec<(usize, &'t ToolCall)>,
    answers_all: bool,
) -> Option<(usize, &'t ToolCall, ResponseSaid<'a>)> {
    let said = response(part)?;
    let same = |call: &Arc<str>, said: &Option<Str<'_>>| said.as_ref().is_some_and(|said| *said.0 == **call);
    let of_id = open.iter().position(|(_, call)| same(&call.id, &said.id));
    let of_name = || open.iter().position(|(_, call)| same(&call.name, &said.name) || same(&call.id, &said.name));
    let at = of_id.or_else(of_name).or((answers_all && !open.is_empty()).then_some(0))?;
    let (at, call) = open.remove(at);
    Some((at, call, said))
}

/// Decodes the result of a call: the text of an object's only field, or the whole object.
fn result(call: &ToolCall, said: &ResponseSaid<'_>, origin: &Origin) -> ToolMessage {
    let response = said.response.map_or("", RawValue::get);
    let held: Fields<'_> = serde_json::from_str(response).unwrap_or_default();
    let only = |name| {
        let text: Str<'_> = serde_json::from_str(held.get(name).filter(|_| held.len() == 1)?.get()).ok()?;
        Some(text.0.into_owned())
    };
    let (error, result) = (only("error"), only("result"));
    let is_error = error.is_some();
    let words = error.or(result).unwrap_or_else(|| response.to_owned());
    let media = user_parts(said.parts.as_deref().unwrap_or_default(), origin);
    let parts = [Part::text(words)].into_iter().chain(media).collect();
    ToolMessage::new(call.id.clone(), call.name.clone(), Arc::new(parts), is_error)
}

/// Returns the provider's JSON: a single item unchanged, several as a list.
fn one_or_list(json: &[&RawValue], origin: &Origin) -> Raw {
    if let [only] = json { raw(only, origin) } else { list(json, origin) }
}

fn list<T: Serialize>(items: &[T], origin: &Origin) -> Raw {
    Raw::new(origin.clone(), to_raw_value(items).expect("it is JSON"))
}
