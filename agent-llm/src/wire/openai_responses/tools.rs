//! Tools on offer, in both directions.

use std::borrow::Cow;

use agent_core::ToolSpec;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{Manner, server_tools};
use crate::wire::{json::write, lenient};

#[derive(Serialize)]
#[serde(untagged)]
enum ToolJson<'a> {
    Raw(&'a RawValue),
    Server(Value),
    Function { r#type: &'static str, name: &'a str, description: &'a str, parameters: &'a Value, strict: bool },
}

/// The list of tools. Another provider's own tools are left out.
pub(super) fn write_tools(specs: &[ToolSpec], manner: &Manner) -> Vec<u8> {
    let mut out = Vec::new();
    write(&specs.iter().filter_map(|spec| tool_json(spec, manner)).collect::<Vec<_>>(), &mut out);
    out
}

fn tool_json<'a>(spec: &'a ToolSpec, manner: &Manner) -> Option<ToolJson<'a>> {
    let own = manner.own(spec.raw.as_ref()).map(ToolJson::Raw);
    let ToolSpec { name, description, parameters, .. } = spec;
    let function =
        || ToolJson::Function { r#type: "function", name, description, parameters, strict: manner.strict_tools };
    let native = || native(spec, manner).map(ToolJson::Server);
    own.or_else(native).or_else(|| (!spec.is_server_side()).then(function))
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

#[cfg(feature = "requests")]
pub(super) mod back {
    use agent_core::ToolSpec;
    use serde_json::{json, value::RawValue};

    use super::{Manner, tool_json};
    use crate::wire::{
        json::{raw, same},
        lenient::{Str, lenient},
        open_struct::open_struct,
    };

    open_struct! {
        ToolSaid {
            kind: Str<'a> = "type",
            name: Str<'a> = "name",
            description: Str<'a> = "description",
            parameters: &'a RawValue = "parameters",
        }
    }

    /// Reads a tool; it keeps its JSON if that says more than would be written.
    pub(in super::super) fn read(json: &RawValue, manner: &Manner) -> ToolSpec {
        let said: ToolSaid<'_> = lenient(json);
        let (kind, name) = (said.kind.unwrap_or_default().0, said.name.unwrap_or_default().0);
        let raw = raw(json, &manner.origin);
        let parameters = match &*kind {
            "function" => {
                let parameters = said.parameters.and_then(|json| serde_json::from_str(json.get()).ok());
                parameters.unwrap_or(json!({"type": "object", "properties": {}}))
            }
            // What the model writes for such a tool is one text.
            "custom" => json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}),
            _ => return ToolSpec::server_side(if name.is_empty() { kind } else { name }, raw),
        };
        let spec = ToolSpec::new(name, said.description.unwrap_or_default().0, parameters);
        let is_exact = tool_json(&spec, manner).is_some_and(|written| same(&written, json));
        if is_exact { spec } else { spec.with_raw(raw) }
    }
}
