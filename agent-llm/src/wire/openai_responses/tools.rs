//! Tools on offer.

use std::borrow::Cow;

use agent_core::ToolSpec;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{messages::Manner, server_tools};
use crate::wire::{json::write, lenient::Str, open_struct::open_struct};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolJson<'a> {
    Raw(&'a RawValue),
    Server(Value),
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

pub(super) fn tool_json<'a>(spec: &'a ToolSpec, manner: &Manner) -> Option<ToolJson<'a>> {
    if let Some(own) = manner.own(spec.raw.as_ref()) {
        return Some(ToolJson::Raw(own));
    }
    if let Some(own) = native(spec, manner) {
        return Some(ToolJson::Server(own));
    }
    let ToolSpec { name, description, parameters, .. } = spec;
    let function =
        || ToolJson::Function { r#type: "function", name, description, parameters, strict: manner.strict_tools };
    (!spec.is_server_side()).then(function)
}

/// The type of a tool, such as `function`.
pub(super) fn kind<'a>(spec: &'a ToolSpec, manner: &Manner) -> Cow<'a, str> {
    let said = manner.own(spec.raw.as_ref()).and_then(|own| serde_json::from_str::<ToolSaid<'_>>(own.get()).ok());
    let native = || native(spec, manner).and_then(|own| Some(Cow::Owned(own["type"].as_str()?.to_owned())));
    said.and_then(|said| said.kind).map(|kind| kind.0).or_else(native).unwrap_or(Cow::Borrowed("function"))
}

fn native(spec: &ToolSpec, manner: &Manner) -> Option<Value> {
    server_tools::tool(spec.server.as_ref()?, manner.origin.model()).ok()
}
