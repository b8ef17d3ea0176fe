//! Writing messages: everything but what the model itself said.

use std::borrow::Cow;

use agent_core::{History, Message, Origin, Part, Raw, ToolMessage};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    assistant,
    parts::{PartJson, Said, joined, part_json},
    profile::SystemRole,
};

/// What decides how messages are written.
#[derive(Debug)]
pub(super) struct Manner {
    pub(super) origin: Origin,
    pub(super) system_role: SystemRole,
    pub(super) verbatim: bool,
}

impl Manner {
    /// True if `raw` may go back as it came. The model does not matter: its name is often an alias, a provider serves
    /// many under one address, and it knows the fields of its own making.
    pub(super) fn knows(&self, raw: &Raw) -> bool {
        let from = raw.origin();
        (from.wire(), from.provider()) == (self.origin.wire(), self.origin.provider())
    }

    /// The provider's own JSON, if this is the provider.
    pub(super) fn own<'a>(&self, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
        let raw = raw.filter(|raw| self.knows(raw))?;
        Some(serde_json::from_str(raw.json()).expect("raw JSON is valid"))
    }
}

/// Writes the messages of one history, in order, though not necessarily all of them.
pub(super) struct Messages<'a> {
    manner: &'a Manner,
    history: &'a History,
    /// Where the last message stood that was looked up.
    at: Option<usize>,
}

#[derive(Serialize)]
struct Spoken<'a> {
    role: &'a str,
    content: Said<'a>,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    role: &'a str,
    tool_call_id: &'a str,
    content: Cow<'a, str>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(manner: &'a Manner, history: &'a History) -> Self {
        Self { manner, history, at: None }
    }

    /// Writes `message`, one of the history, with a comma after it.
    pub(super) fn write(&mut self, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::System(m) => write_spoken(self.manner, self.manner.system_role.as_str(), m.parts(), out),
            Message::User(m) => write_spoken(self.manner, "user", m.parts(), out),
            Message::Assistant(m) => assistant::write(self.manner, m, out),
            Message::Tool(m) => {
                self.write_result(m, out);
                if self.ends_turn(message) {
                    out.push(b',');
                    self.write_media_of_turn(out);
                    return;
                }
            }
        }
        out.push(b',');
    }

    fn write_result(&self, message: &ToolMessage, out: &mut Vec<u8>) {
        let content = match joined(message.parts()) {
            text if text.is_empty() && media(self.manner, message).next().is_some() => {
                "The result is shown below.".into()
            }
            text => text,
        };
        write(&ToolResult { role: "tool", tool_call_id: message.call_id(), content }, out);
    }

    /// True if `message`, a tool result, is the last of its turn.
    fn ends_turn(&mut self, message: &Message) -> bool {
        let is_here = |at: &usize| self.history.get(*at).is_some_and(|m| std::ptr::eq(m, message));
        let all = self.history.len();
        self.at = match self.at {
            Some(last) => (last + 1..all).find(is_here),
            None => (0..all).rev().find(is_here), // mostly one of the newest: the others are written already
        };
        self.at.is_some_and(|at| !matches!(self.history.get(at + 1), Some(Message::Tool(_))))
    }

    /// The API takes only text in tool results, and a user message only after all results of a turn: so what else the
    /// results of the turn hold follows in one user message.
    fn write_media_of_turn(&self, out: &mut Vec<u8>) {
        let turn = (0..=self.at.unwrap_or_default()).rev().map_while(|at| self.history.get(at)?.as_tool());
        let results: Vec<_> = turn.collect();
        let mut parts = Vec::new();
        for result in results.into_iter().rev() {
            let mut media = media(self.manner, result).peekable();
            if media.peek().is_some() {
                let text = format!("From the result of {} (call {}):", result.name(), result.call_id());
                parts.push(PartJson::Text { text: text.into() });
                parts.extend(media);
            }
        }
        if !parts.is_empty() {
            write(&Spoken { role: "user", content: Said::Parts(parts) }, out);
            out.push(b',');
        }
    }
}

/// Writes a message of `parts`.
pub(super) fn write_spoken(manner: &Manner, role: &str, parts: &[Part], out: &mut Vec<u8>) {
    let is_plain = |part: &Part| matches!(part, Part::Text(text) if manner.own(text.raw.as_ref()).is_none());
    let content = if parts.iter().all(is_plain) {
        Said::Text(joined(parts))
    } else {
        Said::Parts(parts.iter().filter_map(|p| part_json(manner, p)).collect())
    };
    write(&Spoken { role, content }, out);
}

/// What the result holds besides text, as far as it can be shown.
fn media<'a>(manner: &Manner, result: &'a ToolMessage) -> impl Iterator<Item = PartJson<'a>> {
    result.parts().iter().filter(|part| part.as_text().is_none()).filter_map(|part| part_json(manner, part))
}

/// Writes JSON.
pub(super) fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a vector takes everything, and keys are texts");
}
