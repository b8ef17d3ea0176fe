//! From contents to messages.

use std::sync::Arc;

use agent_core::{
    AssistantMessage, Block, Message, Part, SystemMessage, ToolCall, ToolMessage, UserMessage, message::Origin,
};
use serde_json::{Map, value::RawValue};

use super::{
    contents::PARTS,
    fold::Fold,
    parts::write_list,
    read::{PartSaid, user_part},
    request::Fields,
    wrapper::Wrapper,
};
use crate::wire::{json::raw_text, lenient::Str, open_struct::open_struct};

/// A content, with its own JSON.
struct Content<'a> {
    json: &'a RawValue,
    role: String,
    /// None if its parts are no list.
    parts: Option<Wrapper<'a>>,
}

impl<'a> Content<'a> {
    fn read(json: &'a RawValue) -> Option<Self> {
        let fields: Fields<'a> = serde_json::from_str(json.get()).ok()?;
        let role = fields.get("role").and_then(|role| serde_json::from_str(role.get()).ok()).unwrap_or_default();
        Some(Self { json, role, parts: Wrapper::read(json.get(), &PARTS) })
    }

    fn is_model(&self) -> bool {
        self.role == "model"
    }

    fn items(&self) -> &[&'a RawValue] {
        self.parts.as_ref().map_or(&[], |parts| &parts.items)
    }
}

/// The messages of a conversation; none if the JSON is not a list of contents.
///
/// Contents of the model that follow each other are one message, since the results of all their calls follow the last.
pub(super) fn read(contents: &RawValue, origin: &Origin) -> Option<Vec<Message>> {
    let contents: Vec<&RawValue> = serde_json::from_str(contents.get()).ok()?;
    let contents: Vec<_> = contents.into_iter().map(Content::read).collect::<Option<_>>()?;
    let (mut messages, mut rest) = (Vec::new(), &contents[..]);
    while let Some(first) = rest.first() {
        if first.is_model() {
            let turn = rest.iter().take_while(|content| content.is_model()).count();
            let message = assistant(&rest[..turn], contents.len() - rest.len(), origin);
            rest = &rest[turn..];
            let results = results(&message, rest, origin);
            rest = &rest[results.contents..];
            messages.push(Message::Assistant(message));
            messages.extend(results.messages);
        } else {
            messages.push(spoken(first, origin));
            rest = &rest[1..];
        }
    }
    Some(messages)
}

/// What the model said; its first content stands at `at`, which names calls that have no id.
fn assistant(contents: &[Content<'_>], at: usize, origin: &Origin) -> AssistantMessage {
    let (mut fold, mut nobody) = (Fold::new(origin.clone(), false), Vec::new());
    for content in contents {
        fold.cut(&mut nobody);
        content.items().iter().for_each(|part| fold.push(part, &at.to_string(), &mut nobody));
    }
    let mut blocks = fold.finish(&Map::new(), &mut nobody);
    if blocks.is_empty() {
        blocks.push(Block::Other(raw_text("[]", origin))); // it said nothing, but it is there
    }
    let json: Vec<_> = contents.iter().map(|content| content.json).collect();
    let raw = match *json {
        [only] => raw_text(only.get(), origin),
        _ => raw_text(&write_list(&json), origin),
    };
    AssistantMessage::from_provider(blocks, raw)
}

/// What somebody else than the model said. Whoever is not named is the user.
fn spoken(content: &Content<'_>, origin: &Origin) -> Message {
    let parts = content.items().iter().map(|part| user_part(part, origin)).collect();
    let raw = raw_text(content.json.get(), origin);
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

/// The results of a turn.
#[derive(Default)]
struct Results {
    messages: Vec<Message>,
    /// How many contents they are of.
    contents: usize,
}

/// Reads the results of the calls in `turn` from the contents that follow it.
///
/// The JSON of a result is its part, or what [`Contents`](super::contents::Contents) makes more of it: a
/// content that is not as a turn's results usually are, or other parts before it. What follows the results in their content is
/// a user message that goes on with it.
fn results(turn: &AssistantMessage, contents: &[Content<'_>], origin: &Origin) -> Results {
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
            results.push((at, message(call, &said, origin).with_raw(raw_text(&json, origin))));
            before.clear();
            is_first = false;
        }
        if is_first {
            break; // it answers nothing
        }
        read += 1;
        if !before.is_empty() {
            let parts = before.iter().map(|part| user_part(part, origin)).collect();
            let raw = raw_text(&write_list(&before), origin);
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

fn message(call: &ToolCall, said: &ResponseSaid<'_>, origin: &Origin) -> ToolMessage {
    let (text, is_error) = said.response.map(|json| text(json.get())).unwrap_or_default();
    let media = said.parts.iter().flatten().map(|part| user_part(part, origin));
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
