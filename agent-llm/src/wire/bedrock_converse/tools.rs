//! Encoding of tools.

use std::borrow::Cow;

use agent_core::{
    ToolSpec,
    message::Origin,
    tool::{ServerTool, WebSearch},
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{family::Family, parts::CachePoint};
use crate::wire::{
    anthropic::input_schema,
    check::{Rules, ToolText, text_of},
    json::{own, write},
    server_tools::Lack,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolJson<'a> {
    #[serde(rename_all = "camelCase")]
    ToolSpec {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: Cow<'a, str>,
        input_schema: Schema,
    },
    SystemTool {
        name: &'static str,
    },
    CachePoint(CachePoint),
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct Schema {
    json: Value,
}

/// Writes the tools as a JSON list.
pub(super) fn write_tools(origin: &Origin, rules: &Rules, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    let tools = specs.iter().flat_map(|spec| {
        let tool = tool_json(origin, rules, spec);
        let mark = spec.cache.filter(|_| tool.is_some()).map(|cache| ToolJson::CachePoint(cache.into()));
        tool.into_iter().chain(mark)
    });
    write(&tools.collect::<Vec<_>>(), &mut out);
    out
}

/// Encodes a tool, without its cache point; `None` if another provider runs it.
pub(super) fn tool_json<'a>(origin: &Origin, rules: &Rules, spec: &'a ToolSpec) -> Option<ToolJson<'a>> {
    match own(origin, spec.raw.as_ref()) {
        Some(raw) => Some(ToolJson::Raw(raw)),
        None if spec.is_server_side() => {
            let name = spec.server.as_ref().and_then(system_tool)?;
            Some(ToolJson::SystemTool { name })
        }
        None => {
            let ToolText { description, parameters } = text_of(spec, rules);
            let json = input_schema(&parameters).into_owned();
            Some(ToolJson::ToolSpec { name: &spec.name, description, input_schema: Schema { json } })
        }
    }
}

/// Returns Amazon's name of a tool that its own models provide.
pub(super) fn system_tool(tool: &ServerTool) -> Option<&'static str> {
    match tool {
        ServerTool::WebSearch(_) => Some("nova_grounding"),
        ServerTool::CodeExecution => Some("nova_code_interpreter"),
        _ => None,
    }
}

/// Returns the feature of a tool that the model does not support, if any.
pub(super) fn lack(tool: &ServerTool, family: &Family) -> Option<Lack> {
    match tool {
        _ if *family != Family::Nova || system_tool(tool).is_none() => Some(Lack::Tool),
        ServerTool::WebSearch(search) if *search != WebSearch::new() => Some(Lack::Option("settings")),
        _ => None,
    }
}
