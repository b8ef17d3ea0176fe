//! Encoding of the conversation.

use agent_core::{AssistantMessage, History, Message, Part, ToolMessage, message::Raw};
use serde_json::value::RawValue;

use super::{
    GeminiCodec,
    parts::{ContentJson, PartJson},
    profile::GeminiGeneration,
    turn::{self, given_id},
    wrapper::{Wrapper, inner},
};
use crate::wire::{
    content::joined,
    json::{Object, own, write as write_json},
};

/// Name of the list in a content.
pub(super) const PARTS: [&str; 1] = ["parts"];

const OPEN: &[u8] = br#"{"role":"user","parts":["#;
const CLOSE: &[u8] = b"]},";

/// Encodes the messages of one history, each followed by a comma.
///
/// All results of a turn are in one content. A result leaves it open, and the next message
/// continues or closes it: so the encoding of a message depends only on earlier messages.
///
/// A provider's own JSON of a result or of a user message is
///
/// * a content, which then begins with it;
/// * a list of parts, which continues the open content;
/// * for a result: a part, which does the same.
pub(super) struct Messages<'a> {
    pub(super) codec: &'a GeminiCodec,
    pub(super) history: &'a History,
}

impl Messages<'_> {
    fn own<'r>(&self, raw: Option<&'r Raw>) -> Option<&'r RawValue> {
        own(&self.codec.origin, raw)
    }

    /// Writes `message`, at index `at` in the history.
    pub(super) fn write(&self, at: usize, message: &Message, out: &mut Vec<u8>) {
        let raw = match message {
            Message::Tool(m) => self.own(m.raw()),
            Message::User(m) => self.own(m.raw()),
            Message::System(m) => self.own(m.raw()),
            Message::Assistant(_) => None,
        };
        let begun = raw.filter(|_| message.as_tool().is_some()).and_then(|own| Wrapper::read(own, &PARTS));
        if let Some(content) = begun.filter(|content| !content.items.is_empty()) {
            self.close(at, out);
            return out.extend_from_slice(content.open(&content.items).as_bytes());
        }
        let is_joined = self.is_joined(message);
        if is_joined {
            out.extend_from_slice(if self.is_open(at) { b"," } else { OPEN });
        } else {
            self.close(at, out);
        }
        match (message, raw.map(RawValue::get)) {
            (Message::Assistant(m), _) => turn::write(self.codec, m, out),
            (Message::Tool(m), None) => self.write_result(at, m, out),
            (Message::User(m), own) if !is_joined => self.write_spoken(own, m.parts(), out),
            // The API has no such role inside a conversation: it becomes a user message.
            (Message::System(m), own) => self.write_spoken(own, m.parts(), out),
            (Message::Tool(_) | Message::User(_), own) => {
                out.extend(own.iter().flat_map(|own| inner(own).unwrap_or(own).bytes()));
            }
        }
    }

    /// Closes the content that the message before `at` left open. For models that do not support
    /// media in results, the media of the turn's results follow in a separate content.
    pub(super) fn close(&self, at: usize, out: &mut Vec<u8>) {
        if !self.is_open(at) {
            return;
        }
        out.extend_from_slice(CLOSE);
        if self.codec.generation == GeminiGeneration::Gemini2 {
            let turn = (0..at).rev().map_while(|at| self.history.get(at).filter(|message| self.is_joined(message)));
            let mut results: Vec<_> = turn.filter_map(Message::as_tool).collect();
            results.reverse();
            let made = results.into_iter().filter(|result| self.own(result.raw()).is_none());
            let shown = made.flat_map(|result| {
                let media = self.media(result);
                let label = || PartJson::text(format!("From the result of {}:", result.name()), false);
                (!media.is_empty()).then(label).into_iter().chain(media)
            });
            write_content(shown.collect(), out);
        }
    }

    /// Returns true if the message before `at` left its content open.
    fn is_open(&self, at: usize) -> bool {
        at.checked_sub(1).and_then(|before| self.history.get(before)).is_some_and(|before| self.is_joined(before))
    }

    /// Returns true if the message continues the content of the results before it: a result, or
    /// parts that followed one.
    fn is_joined(&self, message: &Message) -> bool {
        match message {
            Message::Tool(_) => true,
            Message::User(m) => self.own(m.raw()).is_some_and(|own| inner(own.get()).is_some()),
            Message::System(_) | Message::Assistant(_) => false,
        }
    }

    fn write_spoken(&self, own: Option<&str>, parts: &[Part], out: &mut Vec<u8>) {
        match own.filter(|own| own.starts_with('{')) {
            Some(own) => out.extend_from_slice(&[own.as_bytes(), b","].concat()),
            None => write_content(PartJson::all(&self.codec.origin, parts), out),
        }
    }

    fn write_result(&self, at: usize, message: &ToolMessage, out: &mut Vec<u8>) {
        let (mut text, media) = (joined(message.parts()), self.media(message));
        if text.is_empty() && !media.is_empty() {
            text = "The result is shown below.".into();
        }
        let response = match message.is_error() {
            true => Object::holding(&text, "error"),
            // The API would resolve such a reference to a part of the response.
            false if text.contains("\"$ref\"") => Object::holding(&text, "result"),
            false => Object::of(&text, "result"),
        };
        let parts = if self.codec.generation == GeminiGeneration::Gemini2 { Vec::new() } else { media };
        let (id, name) = (self.given_id(at, message), message.name());
        write_json(&PartJson::FunctionResponse { id, name, response, parts }, out);
    }

    /// Returns the id of the call that the result at `at` answers, if the provider assigned one.
    fn given_id(&self, at: usize, result: &ToolMessage) -> Option<&str> {
        let before = (0..at).rev().filter_map(|at| self.history.get(at)?.as_assistant());
        let call = before.take(1).flat_map(AssistantMessage::calls).find(|call| *call.id == *result.call_id())?;
        given_id(&self.codec.origin, call)
    }

    /// Returns the result's content other than text, as far as it can be encoded.
    fn media<'r>(&self, result: &'r ToolMessage) -> Vec<PartJson<'r>> {
        PartJson::all(&self.codec.origin, result.parts().iter().filter(|part| part.as_text().is_none()))
    }
}

/// Writes a user content. The API rejects an empty list of parts.
fn write_content(parts: Vec<PartJson<'_>>, out: &mut Vec<u8>) {
    if !parts.is_empty() {
        write_json(&ContentJson { rest: None, role: Some("user"), parts }, out);
        out.push(b',');
    }
}
