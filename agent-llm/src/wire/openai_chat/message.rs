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
use crate::wire::json::{knows, own, write};

/// What decides how messages are written.
#[derive(Debug)]
pub(super) struct Manner {
    pub(super) origin: Origin,
    pub(super) system_role: SystemRole,
    pub(super) verbatim: bool,
}

impl Manner {
    /// True if `raw` may go back as it came.
    pub(super) fn knows(&self, raw: &Raw) -> bool {
        knows(&self.origin, raw)
    }

    /// The provider's own JSON, if this is the provider.
    pub(super) fn own<'a>(&self, raw: Option<&'a Raw>) -> Option<&'a RawValue> {
        own(&self.origin, raw)
    }
}

/// Writes the messages of one history.
pub(super) struct Messages<'a> {
    pub(super) manner: &'a Manner,
    pub(super) history: &'a History,
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

impl Messages<'_> {
    /// Writes `message`, which stands at `at` in the history, with a comma after it.
    pub(super) fn write(&self, at: usize, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::System(m) => write_spoken(self.manner, self.manner.system_role.as_str(), m.parts(), out),
            Message::User(m) => write_spoken(self.manner, "user", m.parts(), out),
            Message::Assistant(m) => assistant::write(self.manner, m, out),
            Message::Tool(m) => {
                self.write_result(m, out);
                // A turn enters the history whole: what follows now is all that ever follows.
                if !matches!(self.history.get(at + 1), Some(Message::Tool(_))) {
                    out.push(b',');
                    self.write_media_of_turn(at, out);
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

    /// The API takes only text in tool results, and a user message only after all results of a turn: so what else the
    /// results of the turn hold follows in one user message.
    fn write_media_of_turn(&self, last: usize, out: &mut Vec<u8>) {
        let turn = (0..=last).rev().map_while(|at| self.history.get(at)?.as_tool());
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
