//! Encoding of all messages that are not the model's.

use std::borrow::Cow;

use agent_core::{
    History, Message, Part, ToolMessage,
    message::{Cache, Origin, Raw},
};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{
    parts::{is_plain, part_json},
    turn,
};
use crate::wire::{
    cache_control::CacheControl,
    content::{EMPTY, joined},
    ids::short_id,
    json::{Json, own, write},
    profile::Profile,
    two_roles::keeps_ids,
};

/// The receiving server, and its dialect.
#[derive(Debug)]
pub(in crate::wire) struct Manner {
    pub(in crate::wire) origin: Origin,
    pub(in crate::wire) profile: Profile,
}

impl Manner {
    pub(in crate::wire) fn new(wire: &str, model: impl Into<String>, profile: Profile) -> Self {
        Self { origin: Origin::new(wire, &profile.provider, model), profile }
    }

    /// Everything goes back as it came, and nothing is marked for a cache.
    pub(in crate::wire) fn verbatim(origin: Origin) -> Self {
        Self { origin, profile: Profile::default() }
    }

    pub(in crate::wire) fn system_role(&self) -> &'static str {
        self.profile.system_role.as_str()
    }

    /// The id of a call as it is written; `is_own` is one of the provider's making.
    pub(super) fn call_id<'a>(&self, id: &'a str, is_own: bool) -> Cow<'a, str> {
        match self.profile.call_id_length {
            Some(length) if !is_own => short_id(id, length),
            _ => Cow::Borrowed(id),
        }
    }

    /// The provider's own JSON, if this is the provider.
    pub(in crate::wire) fn own<'a>(&self, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
        own(&self.origin, raw)
    }

    /// Returns the cache marker, if the server supports markers.
    pub(super) fn cache_control(&self, cache: Option<Cache>) -> Option<CacheControl> {
        cache.filter(|_| self.profile.cache_control).map(Into::into)
    }
}

/// A message that is not the model's.
#[derive(Serialize)]
pub(in crate::wire) struct Spoken<'a> {
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: Said<'a>,
}

impl<'a> Spoken<'a> {
    pub(in crate::wire) fn new(role: &'a str, content: Said<'a>) -> Self {
        Self { role, tool_call_id: None, content }
    }
}

/// A content.
#[derive(Serialize)]
#[serde(untagged)]
pub(in crate::wire) enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Json<'a>>),
}

/// Writes `message`, at index `at` in the history, followed by a comma.
pub(super) fn write_message(manner: &Manner, history: &History, at: usize, message: &Message, out: &mut Vec<u8>) {
    let keeps_id = manner.profile.call_id_length.is_none() || keeps_ids(&manner.origin, history, at);
    write_alone(manner, message, keeps_id, out);
    out.push(b',');
    // A turn is added to the history as a whole: no further results follow later.
    if message.as_tool().is_some() && !matches!(history.get(at + 1), Some(Message::Tool(_))) {
        write_media_of_turn(manner, history, at, out);
    }
}

/// Writes `message`, with the id of its call as it is, if it `keeps_id`.
pub(super) fn write_alone(manner: &Manner, message: &Message, keeps_id: bool, out: &mut Vec<u8>) {
    match message {
        Message::System(m) => write_spoken(manner, manner.system_role(), m.raw(), m.parts(), out),
        Message::User(m) => write_spoken(manner, "user", m.raw(), m.parts(), out),
        Message::Assistant(m) => turn::write(manner, m, out),
        Message::Tool(m) => write_result(manner, m, keeps_id, out),
    }
}

/// Writes one user message with the other content of a turn's results: the API accepts only text in
/// tool results, and a user message only after all results of a turn.
fn write_media_of_turn(manner: &Manner, history: &History, last: usize, out: &mut Vec<u8>) {
    let first = last + 1 - (0..=last).rev().map_while(|at| history.get(at)?.as_tool()).count();
    let mut parts = Vec::new();
    for result in (first..=last).filter_map(|at| history.get(at)?.as_tool()) {
        let mut media = media(manner, result).peekable();
        if media.peek().is_some() {
            let text = format!("From the result of {} (call {}):", result.name(), result.call_id());
            parts.push(Json::Made(json!({"type": "text", "text": text})));
            parts.extend(media);
        }
    }
    if !parts.is_empty() {
        write(&Spoken::new("user", Said::Parts(parts)), out);
        out.push(b',');
    }
}

/// Writes a message of `parts`; `raw` is a provider's own JSON of it.
pub(super) fn write_spoken(manner: &Manner, role: &str, raw: Option<&Raw>, parts: &[Part], out: &mut Vec<u8>) {
    if let Some(own) = manner.own(raw) {
        return out.extend_from_slice(own.get().as_bytes());
    }
    // Some servers reject an empty message.
    let content = match content(manner, parts, |_| true) {
        Said::Text(text) if text.trim().is_empty() => Said::Text(EMPTY.into()),
        Said::Parts(parts) if parts.is_empty() => Said::Text(EMPTY.into()),
        content => content,
    };
    write(&Spoken::new(role, content), out);
}

fn write_result(manner: &Manner, message: &ToolMessage, keeps_id: bool, out: &mut Vec<u8>) {
    if let Some(own) = manner.own(message.raw()) {
        return out.extend_from_slice(own.get().as_bytes());
    }
    let content = match content(manner, message.parts(), |part| part.as_text().is_some()) {
        Said::Text(text) if text.is_empty() && media(manner, message).next().is_some() => {
            Said::Text("The result is shown below.".into())
        }
        content => content,
    };
    let tool_call_id = Some(manner.call_id(message.call_id(), keeps_id));
    write(&Spoken { role: "tool", tool_call_id, content }, out);
}

/// Encodes the parts for which `is_taken` holds: as one text, unless a part has other fields.
fn content<'a>(manner: &Manner, parts: &'a [Part], is_taken: impl Fn(&Part) -> bool) -> Said<'a> {
    let is_plain = |part: &Part| matches!(part, Part::Text(text) if is_plain(manner, text));
    if parts.iter().filter(|part| is_taken(part)).all(is_plain) {
        return Said::Text(joined(parts));
    }
    Said::Parts(parts.iter().filter(|part| is_taken(part)).filter_map(|part| part_json(manner, part)).collect())
}

/// Returns the result's content other than text, as far as it can be encoded and its own JSON does
/// not contain it.
fn media<'a>(manner: &Manner, result: &'a ToolMessage) -> impl Iterator<Item = Json<'a>> {
    let parts = if manner.own(result.raw()).is_some() { &[] } else { result.parts() };
    parts.iter().filter(|part| part.as_text().is_none()).filter_map(|part| part_json(manner, part))
}
