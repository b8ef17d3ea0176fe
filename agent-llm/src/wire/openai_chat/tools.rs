//! Tools, as the API writes them, and from there to their specifications.

use agent_core::ToolSpec;
#[cfg(feature = "requests")]
use agent_core::message::Origin;
use serde_json::json;
#[cfg(feature = "requests")]
use serde_json::{Value, value::RawValue};

use super::messages::Manner;
#[cfg(feature = "requests")]
use super::parts::cache;
use crate::wire::json::{Json, present, write};
#[cfg(feature = "requests")]
use crate::wire::json::{raw, same};

/// The list of tools. Others than functions may be another provider's own, or a setting.
pub(super) fn write_tools(manner: &Manner, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(manner, spec)).collect::<Vec<_>>(), &mut out);
    out
}

pub(super) fn tool_json<'a>(manner: &Manner, spec: &'a ToolSpec) -> Option<Json<'a>> {
    let ToolSpec { name, description, parameters, .. } = spec;
    let function = || {
        let function = json!({"name": name, "description": description, "parameters": parameters});
        let mark = manner.cache_control(spec.cache);
        Json::Made(present(json!({"type": "function", "function": function, "cache_control": mark})))
    };
    let own = manner.own(spec.raw.as_ref()).map(Json::Own);
    own.or_else(|| (!spec.is_server_side()).then(function))
}

/// Reads one tool, in the form of this API or of Responses. It keeps its JSON, unless `write` makes the same of it.
#[cfg(feature = "requests")]
pub(in crate::wire) fn read_tool(
    json: &RawValue,
    origin: &Origin,
    write: impl Fn(&ToolSpec) -> Option<Json<'_>>,
) -> serde_json::Result<ToolSpec> {
    let said: Value = serde_json::from_str(json.get())?;
    let kind = said["type"].as_str().unwrap_or_default();
    let function = ["function", "custom"].iter().map(|name| &said[*name]).find(|function| !function.is_null());
    let is_called = function.is_some() || matches!(kind, "function" | "custom");
    let function = function.unwrap_or(&said);
    let raw = raw(json, origin);
    let Some(name) = function["name"].as_str().filter(|_| is_called) else {
        return Ok(ToolSpec::server_side(said["name"].as_str().unwrap_or(kind), raw));
    };
    let parameters = match &function["parameters"] {
        // What the model writes for such a tool is one text.
        Value::Null if kind == "custom" => {
            json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]})
        }
        Value::Null => json!({"type": "object", "properties": {}}),
        schema => schema.clone(),
    };
    let mut spec = ToolSpec::new(name, function["description"].as_str().unwrap_or_default(), parameters);
    spec.cache = cache(&said);
    let is_exact = write(&spec).is_some_and(|written| same(&written, json));
    Ok(if is_exact { spec } else { spec.with_raw(raw) })
}
