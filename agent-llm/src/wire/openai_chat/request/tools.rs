//! From tools to their specifications.

use agent_core::{ToolSpec, message::Raw};
use serde_json::{json, value::RawValue};

use crate::wire::{
    json::same,
    lenient::Str,
    open_struct::open_struct,
    openai_chat::{message::Manner, read_part::cache, tools::tool_json},
};

open_struct! {
    ToolSaid {
        kind: Str<'a> = "type",
        function: FunctionSaid<'a> = "function",
        custom: FunctionSaid<'a> = "custom",
    }
}

open_struct! {
    FunctionSaid {
        name: Str<'a> = "name",
        description: Str<'a> = "description",
        parameters: &'a RawValue = "parameters",
    }
}

/// Reads one tool. It keeps its JSON if that says more than the tool, or otherwise.
pub(in crate::wire) fn read(manner: &Manner, json: &RawValue) -> serde_json::Result<ToolSpec> {
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let raw = Raw::new(manner.origin.clone(), json.to_owned());
    let kind = said.kind.map(|kind| kind.0.into_owned()).unwrap_or_default();
    let Some(FunctionSaid { name: Some(name), description, parameters, .. }) = said.function.or(said.custom) else {
        return Ok(ToolSpec::server_side(kind, raw));
    };
    // A function without parameters takes none, and a tool that is given free text any.
    let parameters = match parameters {
        Some(schema) => serde_json::from_str(schema.get())?,
        None => json!({"type": "object"}),
    };
    let mut spec = ToolSpec::new(name.0, description.unwrap_or_default().0, parameters);
    spec.cache = cache(&said.rest);
    let is_exact = same(&tool_json(manner, &spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw) })
}
