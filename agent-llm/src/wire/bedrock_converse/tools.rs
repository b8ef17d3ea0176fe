//! Writing the tools on offer.

use std::borrow::Cow;

use agent_core::{ToolSpec, message::Origin};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::parts::CachePoint;
use crate::wire::{
    anthropic::input_schema,
    json::{own, write},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ToolJson<'a> {
    #[serde(rename_all = "camelCase")]
    ToolSpec {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        input_schema: Schema<'a>,
    },
    CachePoint(CachePoint),
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct Schema<'a> {
    json: Cow<'a, Value>,
}

/// Writes the tools as a JSON list.
pub(super) fn write_tools(origin: &Origin, specs: &[ToolSpec]) -> Vec<u8> {
    let mut out = Vec::new();
    let tools = specs.iter().flat_map(|spec| {
        let tool = tool_json(origin, spec);
        let mark = spec.cache.filter(|_| tool.is_some()).map(|cache| ToolJson::CachePoint(cache.into()));
        tool.into_iter().chain(mark)
    });
    write(&tools.collect::<Vec<_>>(), &mut out);
    out
}

/// The tool in this API's form, without its cache point; none if another provider runs it.
pub(super) fn tool_json<'a>(origin: &Origin, spec: &'a ToolSpec) -> Option<ToolJson<'a>> {
    match own(origin, spec.raw.as_ref()) {
        Some(raw) => Some(ToolJson::Raw(raw)),
        None if spec.is_server_side() => None,
        None => Some(ToolJson::ToolSpec {
            name: &spec.name,
            description: &spec.description,
            input_schema: Schema { json: input_schema(&spec.parameters) },
        }),
    }
}
