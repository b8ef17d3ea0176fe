//! Writing requests.

use agent_core::{ModelRequest, SystemMessage, message::Origin, tool::WireKey};

use super::{
    claude::Claude,
    messages::Messages,
    parts::{BlockJson, part_json},
    settings::Settings,
    tools::write_tools,
};
use crate::wire::{
    body::Draft,
    json::{own, write, write_with},
    two_roles::write_messages,
};

/// Writes the request's body to `out`.
pub(super) fn encode(
    req: &ModelRequest,
    settings: &Settings<'_>,
    origin: &Origin,
    claude: &Claude,
    key: WireKey,
    out: &mut Draft,
) {
    let extra = &req.params.extra;
    write_with(settings, extra, out);
    out.pop(); // the closing brace
    if let Some(system) = req.system.as_ref().filter(|_| !extra.contains_key("system")) {
        write_system(origin, system, out);
    }
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":");
        write_messages(&req.messages, &Messages(origin), out);
    }
    if !req.tools.is_empty() && !extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&req.tools.written(key, |specs| write_tools(origin, claude, specs)));
    }
    out.push(b'}');
}

/// A system prompt that says nothing is left out: the API takes no empty text.
fn write_system(origin: &Origin, system: &SystemMessage, out: &mut Vec<u8>) {
    const FIELD: &[u8] = b",\"system\":";
    if let Some(own) = own(origin, system.raw()) {
        out.extend_from_slice(FIELD);
        return out.extend_from_slice(own.get().as_bytes());
    }
    let blocks: Vec<_> = system.parts().iter().filter_map(|part| part_json(origin, part)).collect();
    match &*blocks {
        [] => {}
        [BlockJson::Text { text, cache_control: None }] => {
            out.extend_from_slice(FIELD);
            write(text, out);
        }
        blocks => {
            out.extend_from_slice(FIELD);
            write(&blocks, out);
        }
    }
}
