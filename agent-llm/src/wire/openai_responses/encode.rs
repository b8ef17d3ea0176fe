//! Writing requests.

use agent_core::{History, Message, ModelRequest, tool::WireKey};
use serde_json::value::RawValue;

use super::{
    messages::{Manner, Messages},
    settings::Settings,
    tools::write_tools,
};
use crate::{
    Profile,
    wire::{
        body::Draft,
        json::{write, write_with},
    },
};

/// Writes the request's body to `out`.
pub(super) fn encode(req: &ModelRequest, profile: &Profile, manner: &Manner, key: WireKey, out: &mut Draft) {
    let extra = &req.params.extra;
    let settings = Settings::new(req.system.as_ref(), &req.tools, &req.params, req.stream, profile, manner);
    write_with(&settings, extra, out);
    out.pop(); // the closing brace
    if !extra.contains_key("input") && !req.messages.is_empty() {
        out.extend_from_slice(b",\"input\":");
        match plain_text(&req.messages, manner) {
            Some(text) => write(&text, out),
            None => write_items(&req.messages, manner, out),
        }
    }
    if !req.tools.is_empty() && !extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&req.tools.written(key, |specs| write_tools(specs, manner)));
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
