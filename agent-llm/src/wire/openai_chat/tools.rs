//! Tools, as the API writes them, and from there to their specifications.

use agent_core::ToolSpec;
use serde_json::json;
#[cfg(feature = "requests")]
use serde_json::{Value, value::RawValue};

use super::messages::Manner;
use crate::wire::json::{Json, present, write};

/// The list of tools. Others than functions may be another provider's own, or a setting.
pub(super) fn write_tools(manner: &Manner, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(manner, spec)).collect::<Vec<_>>(), &mut out);
    out
}

fn tool_json<'a>(manner: &Manner, spec: &'a ToolSpec) -> Option<Json<'a>> {
    let ToolSpec { name, description, parameters, .. } = spec;
    let function = || {
        let function = json!({"name": name, "description": description, "parameters": parameters});
        let mark = manner.cache_control(spec.cache);
        Json::Made(present(json!({"type": "function", "function": function, "cache_control": mark})))
    };
    let own = manner.own(spec.raw.as_ref()).map(Json::Own);
    own.or_else(|| (!spec.is_server_side()).then(function))
}

/// Reads one tool. It keeps its JSON if that says more than the tool, or otherwise.
#[cfg(feature = "requests")]
pub(super) fn read_tool(manner: &Manner, json: &RawValue) -> serde_json::Result<ToolSpec> {
    use crate::wire::{
        json::{raw, same},
        openai_chat::parts::cache,
    };

    let said: Value = serde_json::from_str(json.get())?;
    let raw = raw(json, &manner.origin);
    let function = said.get("function").filter(|function| !function.is_null()).unwrap_or(&said["custom"]);
    let Some(name) = function["name"].as_str() else {
        return Ok(ToolSpec::server_side(said["type"].as_str().unwrap_or_default(), raw));
    };
    // A function without parameters takes none, and a tool that is given free text any.
    let parameters = function.get("parameters").filter(|schema| !schema.is_null());
    let parameters = parameters.map_or_else(|| json!({"type": "object"}), Value::clone);
    let mut spec = ToolSpec::new(name, function["description"].as_str().unwrap_or_default(), parameters);
    spec.cache = cache(&said);
    let is_exact = tool_json(manner, &spec).is_some_and(|written| same(&written, json));
    Ok(if is_exact { spec } else { spec.with_raw(raw) })
}
