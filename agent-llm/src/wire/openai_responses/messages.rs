//! Writing messages as items: everything but what the model itself said.

use agent_core::{
    History, Message, Part, ToolCall, ToolMessage,
    message::{Origin, Raw},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    assistant,
    parts::{PartJson, Said, Written, part_json},
    server_tools::Screen,
};
use crate::{
    SystemRole,
    wire::{
        content::joined,
        json::{own, write},
    },
};

/// What decides how messages and tools are written.
#[derive(Debug)]
pub(super) struct Manner {
    pub(super) origin: Origin,
    pub(super) system_role: SystemRole,
    pub(super) strict_tools: bool,
}

impl Manner {
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
pub(super) struct Spoken<'a> {
    pub(super) role: &'a str,
    pub(super) content: Said<'a>,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    r#type: &'static str,
    call_id: &'a str,
    output: Said<'a>,
}

impl Messages<'_> {
    /// Writes `message`, which stands at `at` in the history, as items with a comma after each.
    pub(super) fn write(&self, at: usize, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::System(m) => self.write_spoken(self.manner.system_role.as_str(), m.parts(), m.raw(), out),
            Message::User(m) => self.write_spoken("user", m.parts(), m.raw(), out),
            Message::Assistant(m) => assistant::write(self.manner, m, out),
            Message::Tool(m) => self.write_result(at, m, out),
        }
    }

    fn write_spoken(&self, role: &str, parts: &[Part], raw: Option<&Raw>, out: &mut Vec<u8>) {
        match self.manner.own(raw) {
            // An input that was a text alone.
            Some(own) if own.get().starts_with('"') => write_item(&Spoken { role, content: Said::Raw(own) }, out),
            Some(own) => write_item(own, out),
            None if parts.iter().all(|part| self.is_plain(part)) => {
                write_item(&Spoken { role, content: Said::Text(joined(parts)) }, out);
            }
            None => self.write_parts(role, parts, out),
        }
    }

    /// Parts that are items of their own part the message in two.
    fn write_parts(&self, role: &str, parts: &[Part], out: &mut Vec<u8>) {
        let mut content = Vec::new();
        let say = |content: &mut Vec<PartJson<'_>>, out: &mut Vec<u8>| {
            if !content.is_empty() {
                write_item(&Spoken { role, content: Said::Parts(std::mem::take(content)) }, out);
            }
        };
        for part in parts {
            match part_json(self.manner, part) {
                Some(Written::Part(part)) => content.push(part),
                Some(Written::Item(item)) => {
                    say(&mut content, out);
                    write_item(item, out);
                }
                None => {}
            }
        }
        say(&mut content, out);
    }

    fn write_result(&self, at: usize, message: &ToolMessage, out: &mut Vec<u8>) {
        if let Some(own) = self.manner.own(message.raw()) {
            return write_item(own, out);
        }
        let call = self.call_of(at, message);
        if let Some(screen) = call.and_then(|call| Screen::of(self.manner, call, message)) {
            return write_item(&screen, out);
        }
        let output = if message.parts().iter().all(|part| self.is_plain(part)) {
            Said::Text(joined(message.parts()))
        } else {
            let parts = message.parts().iter().filter_map(|part| part_json(self.manner, part));
            Said::Parts(parts.filter_map(Written::into_part).collect())
        };
        let is_custom = call.is_some_and(|call| assistant::is_custom(self.manner, call));
        let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
        write_item(&ToolResult { r#type: kind, call_id: message.call_id(), output }, out);
    }

    /// The call that this answers, which stands before it.
    fn call_of(&self, at: usize, result: &ToolMessage) -> Option<&ToolCall> {
        let before = (0..at).rev().filter_map(|at| self.history.get(at)?.as_assistant()).next();
        before.and_then(|said| said.calls().find(|call| *call.id == *result.call_id()))
    }

    fn is_plain(&self, part: &Part) -> bool {
        matches!(part, Part::Text(text) if self.manner.own(text.raw.as_ref()).is_none())
    }
}

/// Writes an item with a comma after it.
pub(super) fn write_item(item: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    write(&item, out);
    out.push(b',');
}
