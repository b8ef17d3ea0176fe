//! Tools on offer.

use std::borrow::Cow;

use agent_core::{
    ToolSpec,
    message::{Origin, Raw},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::messages::Manner;
use crate::wire::{json::write, lenient::Str, open_struct::open_struct};

#[derive(Serialize)]
#[serde(untagged)]
enum ToolJson<'a> {
    Raw(&'a RawValue),
    Function { r#type: &'static str, name: &'a str, description: &'a str, parameters: &'a Value, strict: bool },
}

open_struct! {
    ToolSaid {
        kind: Str<'a> = "type",
        name: Str<'a> = "name",
        description: Str<'a> = "description",
        parameters: &'a RawValue = "parameters",
    }
}

/// The list of tools. Another provider's own tools are left out.
pub(super) fn write_tools(specs: &[ToolSpec], manner: &Manner) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(spec, manner)).collect::<Vec<_>>(), &mut out);
    out
}

fn tool_json<'a>(spec: &'a ToolSpec, manner: &Manner) -> Option<ToolJson<'a>> {
    if let Some(own) = manner.own(spec.raw.as_ref()) {
        return Some(ToolJson::Raw(own));
    }
    let ToolSpec { name, description, parameters, .. } = spec;
    let function =
        || ToolJson::Function { r#type: "function", name, description, parameters, strict: manner.strict_tools };
    (!spec.is_server_side()).then(function)
}

/// The type of a tool, such as `function`.
pub(super) fn kind<'a>(spec: &'a ToolSpec, manner: &Manner) -> Cow<'a, str> {
    let said = manner.own(spec.raw.as_ref()).and_then(|own| serde_json::from_str::<ToolSaid<'_>>(own.get()).ok());
    said.and_then(|said| said.kind).map_or(Cow::Borrowed("function"), |kind| kind.0)
}

/// Reads a tool; it keeps its JSON if that says more than would be written.
pub(super) fn read_tool(json: &RawValue, manner: &Manner) -> ToolSpec {
    let raw = |origin: &Origin| Raw::new(origin.clone(), json.to_owned());
    let said: ToolSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    let text = |said: Option<Str<'_>>| said.map(|said| said.0.into_owned()).unwrap_or_default();
    let (kind, name) = (text(said.kind), text(said.name));
    let parameters = match &*kind {
        "function" => said.parameters.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or(json!({
            "type": "object", "properties": {}
        })),
        // What the model writes for such a tool is one text.
        "custom" => json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}),
        _ => return ToolSpec::server_side(if name.is_empty() { kind } else { name }, raw(&manner.origin)),
    };
    let spec = ToolSpec::new(name, text(said.description), parameters);
    let written = tool_json(&spec, manner).and_then(|json| serde_json::to_value(json).ok());
    let says_more = written != serde_json::from_str(json.get()).ok();
    if says_more { spec.with_raw(raw(&manner.origin)) } else { spec }
}
