//! Encoding of requests: the system prompt, the conversation and the tools.

use std::borrow::Cow;

use agent_core::{ModelRequest, SystemMessage, ToolSpec, message::Origin};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    AnthropicCodec,
    messages::Messages,
    parts::{Content, marked},
    read, server_tools,
};
use crate::wire::{
    alternating_roles::{AlternatingRoles, write_messages},
    body::Draft,
    cache_control::CacheControl,
    check::{Rules, text_of},
    fields::Fields,
    json::{own, write, write_with},
};

/// Writes the request's body to `out`.
pub(super) fn encode(req: &ModelRequest, settings: &Fields<'_>, codec: &AnthropicCodec, out: &mut Draft) {
    let (extra, origin) = (&req.params.extra, &codec.origin);
    write_with(settings, extra, out);
    out.pop(); // the closing brace
    if let Some(system) = req.system.as_ref().filter(|_| !extra.contains_key("system")) {
        write_system(origin, system, out);
    }
    if !extra.contains_key("messages") {
        out.extend_from_slice(b",\"messages\":");
        write_messages::<Messages>(&req.messages, origin, out);
    }
    if !req.tools.is_empty() && !extra.contains_key("tools") {
        out.extend_from_slice(b",\"tools\":");
        out.extend_from_slice(&req.tools.written(codec.key, |specs| write_tools(codec, specs)));
    }
    out.push(b'}');
}

/// Writes the system prompt. An empty one is left out, because the API rejects empty texts.
fn write_system(origin: &Origin, system: &SystemMessage, out: &mut Vec<u8>) {
    let content = match own(origin, system.raw()) {
        Some(own) => Some(Content::Raw(own)),
        None => Content::of(Messages::parts(origin, 0, system.parts())),
    };
    let Some(content) = content else { return };
    out.extend_from_slice(b",\"system\":");
    write(&content, out);
}

/// A tool on offer.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolJson<'a> {
    Raw(&'a RawValue),
    Function(Fields<'static>),
    /// The provider's own JSON with a cache marker, or a provider-side tool.
    Marked(Value),
}

/// Writes the tools as a JSON list.
fn write_tools(codec: &AnthropicCodec, specs: &[ToolSpec]) -> Vec<u8> {
    let tools: Vec<_> = specs.iter().filter_map(|spec| tool_json(codec, spec)).collect();
    serde_json::to_vec(&tools).expect("keys are texts")
}

/// Encodes a tool; `None` if another provider runs it.
fn tool_json<'a>(codec: &AnthropicCodec, spec: &'a ToolSpec) -> Option<ToolJson<'a>> {
    match own(&codec.origin, spec.raw.as_ref()) {
        Some(raw) if spec.cache.is_some() && spec.cache != read::cache(raw) => {
            return Some(ToolJson::Marked(marked(raw, spec.cache)));
        }
        Some(raw) => return Some(ToolJson::Raw(raw)),
        None => {}
    }
    match spec.server.as_ref().and_then(|own| server_tools::tool(own, &codec.claude).ok()) {
        Some(mut own) => {
            if let Some(mark) = spec.cache.map(CacheControl::from) {
                own["cache_control"] = json!(mark);
            }
            Some(ToolJson::Marked(own))
        }
        None => (!spec.is_server_side()).then(|| function(spec, &codec.rules)),
    }
}

/// Encodes a tool of the application.
pub(super) fn function<'a>(spec: &'a ToolSpec, rules: &Rules) -> ToolJson<'a> {
    let mut fields = Fields::default();
    fields.say("name", Some(&spec.name));
    let text = text_of(spec, rules);
    fields.say("description", Some(&text.description).filter(|text| !text.is_empty()));
    fields.say("input_schema", Some(input_schema(&text.parameters)));
    fields.say("cache_control", spec.cache.map(CacheControl::from));
    ToolJson::Function(fields)
}

/// Adds the type `object`, which the API requires.
pub(crate) fn input_schema(parameters: &Value) -> Cow<'_, Value> {
    match parameters {
        Value::Object(fields) if !fields.contains_key("type") => {
            let mut fields = fields.clone();
            fields.insert("type".into(), "object".into());
            Cow::Owned(Value::Object(fields))
        }
        said => Cow::Borrowed(said),
    }
}
