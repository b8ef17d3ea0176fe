//! Encoding of requests: the system prompt and the tools, around the conversation.

use agent_core::{ModelRequest, SystemMessage, ToolSpec};
use serde::Serialize;
use serde_json::json;

use super::{
    GeminiCodec,
    messages::Messages,
    parts::{ContentJson, PartJson},
    profile::{GeminiGeneration, GeminiSchemas},
    server_tools,
    settings::{lay_spelled, settings},
    wrapper::{self, Wrapper},
};
use crate::wire::{
    body::Draft,
    check::text_of,
    fields::Fields,
    json::{own, write as write_json},
    lenient::lenient,
    schema::open_api::open_api,
};

/// Spellings of the field with the system prompt.
pub(super) const SYSTEM: [&str; 2] = ["systemInstruction", "system_instruction"];

/// Spellings of the list in a tool.
pub(super) const DECLARATIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// Writes the request's body to `out`. Fields in `extra` replace those generated from elsewhere.
pub(super) fn encode(req: &ModelRequest, codec: &GeminiCodec, out: &mut Draft) {
    let extra = &req.params.extra;
    out.push(b'{');
    if let Some(system) = req.system.as_ref().filter(|_| !SYSTEM.iter().any(|name| extra.contains_key(*name))) {
        write_system(codec, system, out);
    }
    if !extra.contains_key("contents") {
        out.extend_from_slice(b"\"contents\":[");
        let messages = Messages { codec, history: &req.messages };
        out.messages(&req.messages, |at, message, out| messages.write(at, message, out));
        messages.close(req.messages.len(), out);
        out.pop_if(|last| *last == b',');
        out.extend_from_slice(b"],");
    }
    if !extra.contains_key("tools") {
        let tools = req.tools.written(codec.key, |specs| write_tools(codec, specs));
        if !tools.is_empty() {
            out.extend_from_slice(b"\"tools\":");
            out.extend_from_slice(&tools);
            out.push(b',');
        }
    }
    let calls = req.tools.iter().any(|spec| !spec.is_server_side()) || extra.contains_key("tools");
    let is_native = |tool| server_tools::tool(tool, codec.profile.exclude_domains).is_ok();
    let has_native = req.tools.iter().any(|spec| spec.server.as_ref().is_some_and(is_native) && spec.raw.is_none());
    // Required if functions are combined with provider-side tools.
    let shows_work = has_native && calls && codec.generation == GeminiGeneration::Gemini3;
    let mut settings = json!(settings(&req.params, calls, shows_work, codec));
    lay_spelled(&mut settings, extra);
    for (name, value) in settings.as_object().into_iter().flatten() {
        write_field(name, value, out);
    }
    out.pop_if(|last| *last == b',');
    out.push(b'}');
}

/// Writes a field, followed by a comma.
fn write_field(name: &str, value: impl Serialize, out: &mut Vec<u8>) {
    write_json(&name, out);
    out.push(b':');
    write_json(&value, out);
    out.push(b',');
}

/// Writes the system prompt with the name of its field.
///
/// A provider's own JSON of it is the field's value, or an object with only that field, which keeps
/// its spelling.
fn write_system(codec: &GeminiCodec, system: &SystemMessage, out: &mut Vec<u8>) {
    if let Some(own) = own(&codec.origin, system.raw()) {
        let fields: wrapper::Fields<'_> = lenient(own);
        let (name, json) =
            SYSTEM.iter().find_map(|name| Some((*name, *fields.get(*name)?))).unwrap_or((SYSTEM[0], own));
        return write_field(name, json, out);
    }
    let parts = PartJson::all(&codec.origin, system.parts());
    if !parts.is_empty() {
        // The API rejects an empty list of parts.
        write_field(SYSTEM[0], ContentJson { rest: None, role: None, parts }, out);
    }
}

/// Writes the tools; empty without tools.
///
/// Functions are declared together. The provider's own JSON of a function is its declaration, or a
/// whole tool, which the following functions then join. A tool that runs at another provider is
/// omitted.
fn write_tools(codec: &GeminiCodec, specs: &[ToolSpec]) -> Vec<u8> {
    // Each tool, and whether its declarations are still open.
    let mut tools: Vec<(String, bool)> = Vec::new();
    for spec in specs {
        let own = own(&codec.origin, spec.raw.as_ref());
        let native = || server_tools::tool(spec.server.as_ref()?, codec.profile.exclude_domains).ok();
        if let (None, Some(native)) = (own, native()) {
            tools.push((native.to_string(), false));
        } else if spec.is_server_side() {
            tools.extend(own.map(|own| (own.get().to_owned(), false)));
        } else if let Some(tool) = own.and_then(|own| Wrapper::read(own, &DECLARATIONS)) {
            tools.push((tool.open(&tool.items), true));
        } else {
            let declared = own.map_or_else(|| declaration(codec, spec), |own| own.get().to_owned());
            match tools.iter_mut().rfind(|(_, is_open)| *is_open) {
                Some((json, _)) => *json += &format!(",{declared}"),
                None => tools.push((format!(r#"{{"functionDeclarations":[{declared}"#), true)),
            }
        }
    }
    let tools = tools.into_iter().map(|(json, is_open)| if is_open { json + "]}" } else { json });
    let tools = tools.collect::<Vec<_>>().join(",");
    if tools.is_empty() { Vec::new() } else { format!("[{tools}]").into_bytes() }
}

fn declaration(codec: &GeminiCodec, spec: &ToolSpec) -> String {
    let mut fields = Fields::default();
    let text = text_of(spec, &codec.rules);
    fields.say("name", Some(&spec.name));
    fields.say("description", Some(&text.description).filter(|text| !text.is_empty()));
    match codec.profile.schemas {
        GeminiSchemas::JsonSchema => fields.say("parametersJsonSchema", Some(&text.parameters)),
        // The API rejects an object without properties.
        GeminiSchemas::OpenApi => {
            fields.say("parameters", Some(open_api(&text.parameters)).filter(|s| s.get("properties").is_some()));
        }
    }
    serde_json::to_string(&fields).expect("its keys are texts")
}
