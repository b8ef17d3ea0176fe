//! Decoding of a request's parts, tools and settings, in the format of this API or of Responses.

use agent_core::{
    Block, ModelParams, Part, ToolSpec,
    message::{Origin, Raw},
    model::Effort,
};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    parts::{cache, part},
    settings::{LIMITS, PLAIN},
};
use crate::wire::{
    json::{Json, raw, same},
    profile::Profile,
    settings::{read, read_form},
};

/// Decodes a part of a message that is not the model's. It keeps its JSON unless `write` produces
/// the same.
pub(in crate::wire) fn read_part(json: &RawValue, origin: &Origin, write: impl Fn(&Part) -> Option<Json<'_>>) -> Part {
    let with = |own: Option<Raw>| match part(json, origin) {
        Block::Text(text) => Part::Text(text.with_raw(own)),
        Block::Image(media) => Part::Image(media.with_raw(own)),
        Block::Document(media) => Part::Document(media.with_raw(own)),
        _ => Part::Other(raw(json, origin)),
    };
    let plain = with(None);
    let is_exact = write(&plain).is_some_and(|written| same(&written, json));
    if is_exact { plain } else { with(Some(raw(json, origin))) }
}

/// Decodes one tool, in the format of this API or of Responses. It keeps its JSON unless `write`
/// produces the same.
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
        // The model's input to such a tool is one text.
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

/// All efforts. Several share one name on some servers: the first match wins.
const EFFORTS: [Effort; 7] =
    [Effort::High, Effort::Medium, Effort::Low, Effort::Minimal, Effort::None, Effort::XHigh, Effort::Max];

/// Decodes the settings that all providers share.
pub(super) fn params(said: &Map<String, Value>, profile: &Profile) -> ModelParams {
    let get = |usual| said.get(profile.name_of(usual)?);
    let is_effort = |effort: &Effort| match profile.effort.get(effort) {
        Some(own) => own.iter().all(|(name, value)| said.get(name) == Some(value)),
        None => profile.known(*effort) == *effort && get("reasoning_effort") == Some(&json!(effort)),
    };
    let limits = LIMITS.iter().filter_map(|name| said.get(*name));
    let limit = get("max_tokens").into_iter().chain(limits).find(|most| most.is_u64());
    let plain = PLAIN.into_iter().chain(["parallel_tool_calls"]);
    read(plain.map(|name| (name, get(name).cloned())).chain([
        ("max_tokens", limit.cloned()),
        ("stop", get("stop").map(|stop| if stop.is_string() { json!([stop]) } else { stop.clone() })),
        ("tool_choice", get("tool_choice").map(read_choice)),
        ("effort", EFFORTS.into_iter().find(is_effort).map(|effort| json!(effort))),
        ("output", get("response_format").map(read_output)),
    ]))
}

/// Decodes the tool choice, whose name is not nested in Responses.
pub(in crate::wire) fn read_choice(said: &Value) -> Value {
    let name = said["function"]["name"].as_str().or(said["name"].as_str());
    match (said.as_str(), name) {
        (Some("any"), _) => json!("required"),
        (None, Some(name)) if said["type"].is_string() => json!({"tool": name}),
        _ => said.clone(),
    }
}

/// Decodes the output format, whose schema is not nested in Responses.
pub(in crate::wire) fn read_output(said: &Value) -> Value {
    let form = said.get("json_schema").unwrap_or(said);
    match said["type"].as_str() {
        Some("json_object") => json!({"name": "json", "schema": null}),
        Some("json_schema") if form["schema"].is_object() => read_form(form),
        _ => Value::Null,
    }
}
