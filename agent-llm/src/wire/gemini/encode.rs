//! Writing requests.

use agent_core::{ModelRequest, SystemMessage, tool::WireKey};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    contents::Contents,
    manner::Manner,
    profile::{GeminiGeneration, GeminiProfile},
    server_tools,
    settings::{Settings, Terms},
    speak::PartJson,
    tools,
    wrapper::Wrapper,
};
use crate::wire::{body::Draft, json::write as write_json};

/// The names of the field that holds the system prompt.
pub(super) const SYSTEM: [&str; 2] = ["systemInstruction", "system_instruction"];

#[derive(Serialize)]
struct SystemJson<'a> {
    parts: Vec<PartJson<'a>>,
}

/// Writes the request's body to `out`. What `extra` holds is not written from elsewhere.
pub(super) fn encode(req: &ModelRequest, profile: &GeminiProfile, manner: &Manner, key: WireKey, out: &mut Draft) {
    let extra = &req.params.extra;
    out.push(b'{');
    if let Some(system) = req.system.as_ref().filter(|_| !SYSTEM.iter().any(|name| extra.contains_key(*name))) {
        write_system(manner, system, out);
    }
    if !extra.contains_key("contents") {
        out.extend_from_slice(b"\"contents\":[");
        let contents = Contents { manner, history: &req.messages };
        out.messages(&req.messages, |at, message, out| contents.write(at, message, out));
        contents.close(req.messages.len(), out);
        out.pop_if(|last| *last == b',');
        out.extend_from_slice(b"],");
    }
    if !extra.contains_key("tools") {
        let tools = req.tools.written(key, |specs| tools::write(manner, profile, specs));
        if !tools.is_empty() {
            out.extend_from_slice(b"\"tools\":");
            out.extend_from_slice(&tools);
            out.push(b',');
        }
    }
    let terms = Terms { profile, generation: manner.generation, model: manner.origin.model() };
    let calls = req.tools.iter().any(|spec| !spec.is_server_side()) || extra.contains_key("tools");
    let is_native = |tool| server_tools::tool(tool, profile.exclude_domains).is_ok();
    let shows_work = req.tools.iter().any(|spec| spec.server.as_ref().is_some_and(is_native) && spec.raw.is_none());
    let shows_work = shows_work && calls && manner.generation == GeminiGeneration::Gemini3;
    Settings::new(&req.params, calls, terms).showing_work(shows_work).write(extra, out);
    out.pop_if(|last| *last == b',');
    out.push(b'}');
}

/// Writes the system prompt with the name of its field and a comma after it.
///
/// A provider's own JSON of it is the field's value, or an object with nothing but that field, which keeps its spelling.
fn write_system(manner: &Manner, system: &SystemMessage, out: &mut Vec<u8>) {
    let own = manner.own(system.raw()).map(RawValue::get);
    let field = own.and_then(|own| Wrapper::fields(own)?.into_iter().find(|(name, _)| SYSTEM.contains(&name.as_str())));
    let (name, json) = match &field {
        Some((name, json)) => (name.as_str(), Some(json.get())),
        None => (SYSTEM[0], own),
    };
    let parts: Vec<_> = system.parts().iter().filter_map(|part| PartJson::of(manner, part)).collect();
    if json.is_none() && parts.is_empty() {
        return; // the API refuses one without parts
    }
    write_json(&name, out);
    out.push(b':');
    match json {
        Some(json) => out.extend_from_slice(json.as_bytes()),
        None => write_json(&SystemJson { parts }, out),
    }
    out.push(b',');
}
