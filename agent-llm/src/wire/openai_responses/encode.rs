//! Writing requests, and messages as items: everything but what the model itself said.

use agent_core::{History, Message, ModelRequest, Part, ToolCall, ToolMessage, message::Raw, tool::WireKey};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{
    Manner,
    parts::{Said, is_part, part_json},
    settings::Settings,
    tools::write_tools,
    turn,
};
use crate::{
    Profile,
    wire::{
        body::Draft,
        content::{Address, joined},
        json::{Json, write, write_with},
        lenient::kind,
    },
};

/// Writes the request's body to `out`.
pub(super) fn encode(req: &ModelRequest, profile: &Profile, manner: &Manner, key: WireKey, out: &mut Draft) {
    let ModelRequest { system, tools: specs, params, stream, .. } = req;
    let settings = Settings { system: system.as_ref(), specs, params, stream: *stream, profile, manner };
    write_with(&settings.fields(), &params.extra, out);
    out.pop(); // the closing brace
    if !params.extra.contains_key("input") && !req.messages.is_empty() {
        out.extend_from_slice(b",\"input\":");
        match plain_text(&req.messages, manner) {
            Some(text) => write(&text, out),
            None => write_items(&req.messages, manner, out),
        }
    }
    if !specs.is_empty() && !params.extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&specs.written(key, |specs| write_tools(specs, manner)));
    }
    out.push(b'}');
}

/// The input as a text alone, if it was read as that.
fn plain_text<'a>(history: &'a History, manner: &Manner) -> Option<&'a RawValue> {
    match history.get(0)? {
        Message::User(only) if history.len() == 1 => manner.own(only.raw()).filter(|own| own.get().starts_with('"')),
        _ => None,
    }
}

/// Each item has a comma after it, so that what is written of a message does not depend on whether another follows.
fn write_items(history: &History, manner: &Manner, out: &mut Draft) {
    let messages = Messages { manner, history };
    out.push(b'[');
    out.messages(history, |at, message, out| messages.write(at, message, out));
    out.pop_if(|last| *last == b',');
    out.push(b']');
}

/// Writes an item with a comma after it.
pub(super) fn write_item(item: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    write(&item, out);
    out.push(b',');
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

struct Messages<'a> {
    manner: &'a Manner,
    history: &'a History,
}

impl Messages<'_> {
    /// Writes `message`, which stands at `at` in the history, as items with a comma after each.
    fn write(&self, at: usize, message: &Message, out: &mut Vec<u8>) {
        match message {
            Message::System(m) => self.write_spoken(self.manner.system_role.as_str(), m.parts(), m.raw(), out),
            Message::User(m) => self.write_spoken("user", m.parts(), m.raw(), out),
            Message::Assistant(m) => turn::write(self.manner, m, out),
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
        let say = |content: &mut Vec<Json<'_>>, out: &mut Vec<u8>| {
            if !content.is_empty() {
                write_item(&Spoken { role, content: Said::Parts(std::mem::take(content)) }, out);
            }
        };
        for part in parts.iter().filter_map(|part| part_json(self.manner, part)) {
            match part {
                Json::Own(item) if !is_part(item) => {
                    say(&mut content, out);
                    write_item(item, out);
                }
                part => content.push(part),
            }
        }
        say(&mut content, out);
    }

    /// A result of the kind that its call asks for, by the provider's own account of the call.
    fn write_result(&self, at: usize, message: &ToolMessage, out: &mut Vec<u8>) {
        if let Some(own) = self.manner.own(message.raw()) {
            return write_item(own, out);
        }
        let call = self.call_of(at, message).and_then(|call| self.manner.own(call.raw.as_ref()));
        let screen = message.parts().iter().rev().find_map(|part| match part {
            Part::Image(image) => {
                let address = Address::of(image, "image/png");
                Some(Json::Made(json!({"type": "computer_screenshot", "image_url": address})))
            }
            _ => None,
        });
        let (kind, output) = match (call.map(kind).unwrap_or_default().as_str(), screen) {
            ("computer_call", Some(screen)) => ("computer_call_output", Said::Part(screen)),
            ("custom_tool_call", _) => ("custom_tool_call_output", self.output(message)),
            _ => ("function_call_output", self.output(message)),
        };
        write_item(&ToolResult { r#type: kind, call_id: message.call_id(), output }, out);
    }

    fn output<'b>(&self, message: &'b ToolMessage) -> Said<'b> {
        let parts = message.parts();
        if parts.iter().all(|part| self.is_plain(part)) {
            return Said::Text(joined(parts));
        }
        let parts = parts.iter().filter_map(|part| part_json(self.manner, part));
        Said::Parts(parts.filter(|part| !matches!(part, Json::Own(item) if !is_part(item))).collect())
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
