//! Writing the conversation.

use agent_core::{AssistantMessage, History, Message, Part, ToolMessage, UserMessage, message::Raw};
use serde_json::value::RawValue;

use super::{
    GeminiCodec,
    parts::{ContentJson, PartJson},
    profile::GeminiGeneration,
    turn::{self, given_id},
    wrapper::{Wrapper, inner, write_items},
};
use crate::wire::json::{Object, own, write as write_json};

/// The name of the list in a content.
pub(super) const PARTS: [&str; 1] = ["parts"];

const OPEN: &[u8] = br#"{"role":"user","parts":["#;
const CLOSE: &[u8] = b"]},";

/// Writes the messages of one history, each with a comma after it.
///
/// All results of a turn are in one content. A result leaves it open, and the message after it goes on with it or closes
/// it: so what is written of a message depends on those before it alone.
///
/// A provider's own JSON of a result or of a user message is
///
/// * a content, which then begins with it;
/// * a list of parts, which goes on with the content that a result left open;
/// * for a result: a part, which does the same.
pub(super) struct Contents<'a> {
    pub(super) codec: &'a GeminiCodec,
    pub(super) history: &'a History,
}

impl Contents<'_> {
    fn own<'r>(&self, raw: Option<&'r Raw>) -> Option<&'r RawValue> {
        own(&self.codec.origin, raw)
    }

    /// Writes `message`, which stands at `at` in the history.
    pub(super) fn write(&self, at: usize, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::Tool(m) => self.write_result(at, m, || message.text(), out),
            Message::User(m) if self.goes_on(at, m) => self.write_more(at, m, out),
            _ => {
                self.close(at, out);
                match message {
                    Message::Assistant(m) => turn::write(self.codec, m, out),
                    Message::User(m) => self.write_spoken(m.raw(), m.parts(), out),
                    // The API has no such role within a conversation: the user says it.
                    Message::System(m) => self.write_spoken(m.raw(), m.parts(), out),
                    Message::Tool(_) => {}
                }
            }
        }
    }

    /// Closes the content that the message before `at` left open.
    pub(super) fn close(&self, at: usize, out: &mut Vec<u8>) {
        if self.is_open(at) {
            out.extend_from_slice(CLOSE);
            self.write_media_of_turn(at, out);
        }
    }

    /// True if the message before `at` left its content open.
    fn is_open(&self, at: usize) -> bool {
        match at.checked_sub(1).and_then(|before| Some((before, self.history.get(before)?))) {
            Some((_, Message::Tool(_))) => true,
            Some((before, Message::User(m))) => self.goes_on(before, m),
            _ => false,
        }
    }

    /// True if the user message at `at` goes on with the content of the results before it.
    fn goes_on(&self, at: usize, message: &UserMessage) -> bool {
        self.own(message.raw()).is_some_and(|own| own.get().starts_with('[')) && self.is_open(at)
    }

    fn write_more(&self, at: usize, message: &UserMessage, out: &mut Vec<u8>) {
        if let Some(parts) = self.own(message.raw()).and_then(|own| inner(own.get())) {
            self.begin_part(at, out);
            out.extend_from_slice(parts.as_bytes());
        }
    }

    /// Goes on with the open content, or begins one.
    fn begin_part(&self, at: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.is_open(at) { b"," } else { OPEN });
    }

    fn write_spoken(&self, raw: Option<&Raw>, parts: &[Part], out: &mut Vec<u8>) {
        match self.own(raw).filter(|own| own.get().starts_with('{')) {
            Some(own) => out.extend_from_slice(own.get().as_bytes()),
            None => {
                let parts = PartJson::all(&self.codec.origin, parts);
                if parts.is_empty() {
                    return; // the API refuses a content without parts
                }
                write_json(&ContentJson { role: Some("user"), parts }, out);
            }
        }
        out.push(b',');
    }

    fn write_result(&self, at: usize, message: &ToolMessage, text: impl FnOnce() -> String, out: &mut Vec<u8>) {
        let Some(own) = self.own(message.raw()).map(RawValue::get) else {
            self.begin_part(at, out);
            return self.write_new_result(at, message, text(), out);
        };
        match Wrapper::read(own, &PARTS).filter(|content| !content.items.is_empty()) {
            Some(content) => {
                self.close(at, out);
                content.open(out);
                write_items(&content.items, out);
            }
            None => {
                self.begin_part(at, out);
                out.extend_from_slice(inner(own).unwrap_or(own).as_bytes());
            }
        }
    }

    fn write_new_result(&self, at: usize, message: &ToolMessage, mut text: String, out: &mut Vec<u8>) {
        let media = self.media(message);
        if text.is_empty() && !media.is_empty() {
            text.push_str("The result is shown below.");
        }
        let response = match message.is_error() {
            true => Object::holding(&text, "error"),
            false => Object::of(&text, "result"),
        };
        let parts = if self.codec.generation == GeminiGeneration::Gemini2 { Vec::new() } else { media };
        let (id, name) = (self.given_id(at, message), message.name());
        write_json(&PartJson::FunctionResponse { id, name, response, parts }, out);
    }

    /// The id of the call that the result at `at` answers, if the provider gave it one.
    fn given_id(&self, at: usize, result: &ToolMessage) -> Option<&str> {
        let before = (0..at).rev().filter_map(|at| self.history.get(at)?.as_assistant());
        let call = before.take(1).flat_map(AssistantMessage::calls).find(|call| *call.id == *result.call_id())?;
        given_id(&self.codec.origin, call)
    }

    /// Models that cannot look into results are shown in a content of its own what the results of the turn before `at` hold
    /// besides text.
    fn write_media_of_turn(&self, at: usize, out: &mut Vec<u8>) {
        if self.codec.generation != GeminiGeneration::Gemini2 {
            return;
        }
        let turn = (0..at).rev().map_while(|at| match self.history.get(at)? {
            Message::Tool(m) => Some(Some(m)),
            Message::User(m) if self.goes_on(at, m) => Some(None),
            _ => None,
        });
        let results: Vec<_> = turn.flatten().filter(|m| self.own(m.raw()).is_none()).collect();
        let labels: Vec<_> = results.iter().rev().map(|m| format!("From the result of {}:", m.name())).collect();
        let mut parts = Vec::new();
        for (result, label) in results.iter().rev().zip(&labels) {
            let media = self.media(result);
            if !media.is_empty() {
                parts.push(PartJson::text(label, false));
                parts.extend(media);
            }
        }
        if !parts.is_empty() {
            write_json(&ContentJson { role: Some("user"), parts }, out);
            out.push(b',');
        }
    }

    /// What the result holds besides text, as far as it can be shown.
    fn media<'r>(&self, result: &'r ToolMessage) -> Vec<PartJson<'r>> {
        let parts = result.parts().iter().filter(|part| part.as_text().is_none());
        parts.filter_map(|part| PartJson::of(&self.codec.origin, part)).collect()
    }
}
