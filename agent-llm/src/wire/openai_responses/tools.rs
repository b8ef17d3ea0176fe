//! Tools on offer, in both directions.

use std::borrow::Cow;

use agent_core::ToolSpec;
#[cfg(feature = "requests")]
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Manner, server_tools};
use crate::wire::{
    json::{Json, write},
    lenient,
};

/// The list of tools. Another provider's own tools are left out.
pub(super) fn write_tools(specs: &[ToolSpec], manner: &Manner) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(spec, manner)).collect::<Vec<_>>(), &mut out);
    out
}

fn tool_json<'a>(spec: &'a ToolSpec, manner: &Manner) -> Option<Json<'a>> {
    let own = manner.own(spec.raw.as_ref()).map(Json::Own);
    let ToolSpec { name, description, parameters, .. } = spec;
    let strict = manner.profile.responses.strict_tools;
    let function = || json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": strict});
    let made = || native(spec, manner).or_else(|| (!spec.is_server_side()).then(function)).map(Json::Made);
    own.or_else(made)
}

/// The type of a tool, such as `function`.
pub(super) fn kind(spec: &ToolSpec, manner: &Manner) -> Cow<'static, str> {
    let own = manner.own(spec.raw.as_ref()).map(lenient::kind).filter(|kind| !kind.is_empty());
    let native = || Some(native(spec, manner)?["type"].as_str()?.to_owned());
    own.or_else(native).map_or(Cow::Borrowed("function"), Cow::Owned)
}

fn native(spec: &ToolSpec, manner: &Manner) -> Option<Value> {
    server_tools::tool(spec.server.as_ref()?, manner.origin.model()).ok()
}

/// Reads a tool; it keeps its JSON if that says more than would be written.
#[cfg(feature = "requests")]
pub(super) fn read_tool(json: &RawValue, manner: &Manner) -> ToolSpec {
    use crate::wire::json::{raw, same};

    let (said, raw): (Value, _) = (lenient::lenient(json), raw(json, &manner.origin));
    let text = |name: &str| said[name].as_str().unwrap_or_default();
    let parameters = match (text("type"), &said["parameters"]) {
        ("function", Value::Null) => json!({"type": "object", "properties": {}}),
        ("function", schema) => schema.clone(),
        // What the model writes for such a tool is one text.
        ("custom", _) => json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}),
        (kind, _) => return ToolSpec::server_side(if text("name").is_empty() { kind } else { text("name") }, raw),
    };
    let spec = ToolSpec::new(text("name"), text("description"), parameters);
    let is_exact = tool_json(&spec, manner).is_some_and(|written| same(&written, json));
    if is_exact { spec } else { spec.with_raw(raw) }
}
