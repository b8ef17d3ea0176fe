//! Writing requests.

use agent_core::{ModelRequest, SystemMessage, WireKey};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    contents::Contents,
    manner::Manner,
    profile::GeminiProfile,
    settings::{Settings, Terms},
    speak::PartJson,
    tools,
};
use crate::wire::json::write as write_json;

/// The names of the field that holds the system prompt.
pub(super) const SYSTEM: [&str; 2] = ["systemInstruction", "system_instruction"];

#[derive(Serialize)]
struct SystemJson<'a> {
    parts: Vec<PartJson<'a>>,
}

/// Writes the request's body to `out`. What `extra` holds is not written from elsewhere.
pub(super) fn encode(req: &ModelRequest, profile: &GeminiProfile, manner: &Manner, key: WireKey, out: &mut Vec<u8>) {
    let extra = &req.params.extra;
    out.push(b'{');
    if let Some(system) = req.system.as_ref().filter(|_| !SYSTEM.iter().any(|name| extra.contains_key(*name))) {
        write_system(manner, system, out);
    }
    if !extra.contains_key("contents") {
        out.extend_from_slice(b"\"contents\":[");
        let contents = Contents { manner, history: &req.messages };
        req.messages.write(key, out, |at, message, out| contents.write(at, message, out));
        contents.close(req.messages.len(), out);
        out.pop_if(|last| *last == b',');
        out.extend_from_slice(b"],");
    }
    if !extra.contains_key("tools") {
        let tools = req.tools.written(key, |specs| tools::write(manner, profile.schemas, specs));
        if !tools.is_empty() {
            out.extend_from_slice(b"\"tools\":");
            out.extend_from_slice(&tools);
            out.push(b',');
        }
    }
    let terms = Terms { profile, generation: manner.generation, model: manner.origin.model() };
    let calls = req.tools.iter().any(|spec| !spec.is_server_side()) || extra.contains_key("tools");
    Settings::new(&req.params, calls, terms).write(extra, out);
    out.pop_if(|last| *last == b',');
    out.push(b'}');
}

/// Writes the system prompt with the name of its field and a comma after it.
///
/// A provider's own JSON of it is an object with nothing but that field, so that its spelling is kept, too.
fn write_system(manner: &Manner, system: &SystemMessage, out: &mut Vec<u8>) {
    let field = manner.own(system.raw()).map(RawValue::get).and_then(|own| own.strip_prefix('{')?.strip_suffix('}'));
    match field {
        Some(field) => out.extend_from_slice(field.as_bytes()),
        None => {
            let parts: Vec<_> = system.parts().iter().filter_map(|part| PartJson::of(manner, part)).collect();
            if parts.is_empty() {
                return; // the API refuses one without parts
            }
            out.extend_from_slice(b"\"systemInstruction\":");
            write_json(&SystemJson { parts }, out);
        }
    }
    out.push(b',');
}
