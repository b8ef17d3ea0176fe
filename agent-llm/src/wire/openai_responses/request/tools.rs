//! From tools to their specifications.

use agent_core::{
    ToolSpec,
    message::{Origin, Raw},
};
use serde_json::{json, value::RawValue};

use crate::wire::{
    lenient::Str,
    openai_responses::{
        messages::Manner,
        tools::{ToolSaid, tool_json},
    },
};

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
