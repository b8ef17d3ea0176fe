//! Encoding of all messages that are not the model's.

use std::borrow::Cow;

use agent_core::{
    History, Message, ModelRequest, Part, ToolMessage,
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
    check::Rules,
    content::{EMPTY, joined},
    json::{Json, own, write},
    profile::Profile,
};

/// The receiving server, and its dialect.
#[derive(Clone, Debug)]
pub(in crate::wire) struct MessageStyle {
    pub(in crate::wire) origin: Origin,
    pub(in crate::wire) profile: Profile,
    pub(in crate::wire) rules: Rules,
}

impl MessageStyle {
    pub(in crate::wire) fn new(wire: &str, model: impl Into<String>, profile: Profile, rules: Rules) -> Self {
        Self { origin: Origin::new(wire, &profile.provider, model), profile, rules }
    }

    /// Dialect of a server that accepts its own messages unchanged, without cache markers.
    pub(in crate::wire) fn verbatim(origin: Origin, rules: Rules) -> Self {
        Self { origin, profile: Profile::default(), rules }
    }

    /// Returns true if the part is allowed in the content of a result.
    fn is_of_result(&self, part: &Part) -> bool {
        part.as_text().is_some() || self.rules.turns().own_parts_in_results && matches!(part, Part::Other(_))
    }

    pub(in crate::wire) fn system_role(&self) -> &'static str {
        self.profile.system_role.as_str()
    }

    /// Returns the provider's own JSON, if it is this provider's.
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
    tool_call_id: Option<&'a str>,
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

/// Writes `message`, at index `at` in the request's history, followed by a comma.
pub(super) fn write_message(
    manner: &MessageStyle,
    req: &ModelRequest,
    at: usize,
    message: &Message,
    out: &mut Vec<u8>,
) {
    match message {
        Message::Assistant(m) => turn::write(manner, m, manner.rules.needs_reasoning(req, manner.origin.model()), out),
        _ => write_alone(manner, message, out),
    }
    out.push(b',');
    let history = &req.messages;
    // A turn is added to the history as a whole: no further results follow later.
    if message.as_tool().is_some() && !matches!(history.get(at + 1), Some(Message::Tool(_))) {
        write_media_of_turn(manner, history, at, out);
    }
}

/// Writes `message`.
pub(super) fn write_alone(manner: &MessageStyle, message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::System(m) => write_spoken(manner, manner.system_role(), m.raw(), m.parts(), out),
        Message::User(m) => write_spoken(manner, "user", m.raw(), m.parts(), out),
        Message::Assistant(m) => turn::write(manner, m, false, out),
        Message::Tool(m) => write_result(manner, m, out),
    }
}

/// Writes one user message with the other content of a turn's results: the API accepts only text in
/// tool results, and a user message only after all results of a turn.
fn write_media_of_turn(manner: &MessageStyle, history: &History, last: usize, out: &mut Vec<u8>) {
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
        if manner.rules.turns().answer_after_results {
            write(&Spoken::new("assistant", Said::Text(EMPTY.into())), out);
            out.push(b',');
        }
        write(&Spoken::new("user", Said::Parts(parts)), out);
        out.push(b',');
    }
}

/// Writes a message of `parts`; `raw` is a provider's own JSON of it.
pub(super) fn write_spoken(manner: &MessageStyle, role: &str, raw: Option<&Raw>, parts: &[Part], out: &mut Vec<u8>) {
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

fn write_result(manner: &MessageStyle, message: &ToolMessage, out: &mut Vec<u8>) {
    if let Some(own) = manner.own(message.raw()) {
        return out.extend_from_slice(own.get().as_bytes());
    }
    let content = match content(manner, message.parts(), |part| manner.is_of_result(part)) {
        Said::Text(text) if text.is_empty() && media(manner, message).next().is_some() => {
            Said::Text("The result is shown below.".into())
        }
        content => content,
    };
    let tool_call_id = Some(message.call_id());
    write(&Spoken { role: "tool", tool_call_id, content }, out);
}

/// Encodes the parts for which `is_taken` holds: as one text, unless a part has other fields.
fn content<'a>(manner: &MessageStyle, parts: &'a [Part], is_taken: impl Fn(&Part) -> bool) -> Said<'a> {
    let is_plain = |part: &Part| matches!(part, Part::Text(text) if is_plain(manner, text));
    if parts.iter().filter(|part| is_taken(part)).all(is_plain) {
        return Said::Text(joined(parts));
    }
    Said::Parts(parts.iter().filter(|part| is_taken(part)).filter_map(|part| part_json(manner, part)).collect())
}

/// Returns the result's content other than text, as far as it can be encoded and its own JSON does
/// not contain it.
fn media<'a>(manner: &MessageStyle, result: &'a ToolMessage) -> impl Iterator<Item = Json<'a>> {
    let parts = if manner.own(result.raw()).is_some() { &[] } else { result.parts() };
    parts.iter().filter(|part| !manner.is_of_result(part)).filter_map(|part| part_json(manner, part))
}
