//! Decoding of requests.

use agent_core::{Result, ToolSpec, ToolSpecs, message::Origin};
use serde_json::{Value, value::RawValue};

use super::{
    family::Family,
    messages::Converse,
    parts::mark_of,
    read,
    settings::{self, TOOLS},
    tools::tool_json,
};
use crate::{
    ParsedRequest,
    error::no_request,
    wire::{
        alternating_roles::reading::{Answer, Fields, fields, take_request, values},
        check::Rules,
        json::{raw, same},
        lenient::{Str, text},
        open_struct::open_struct,
    },
};

/// Decodes a request; the raw JSON of its messages and tools, and `extra`, keep unknown content.
/// The URL, not the body, contains the model and whether the answer is streamed.
pub(super) fn decode_request(body: &str, origin: &Origin, family: &Family) -> Result<ParsedRequest> {
    parsed(body, origin, family).map_err(|e| no_request("a request of Converse", e))
}

fn parsed(body: &str, origin: &Origin, family: &Family) -> serde_json::Result<ParsedRequest> {
    let mut fields = fields(body)?;
    let mut parsed = take_request::<Converse>(&mut fields, origin)?;
    let mut of_tools: Option<Fields<'_>> =
        fields.remove(TOOLS).map(|json| serde_json::from_str(json.get())).transpose()?;
    if let Some(json) = of_tools.as_mut().and_then(|of_tools| of_tools.remove("tools")) {
        parsed.tools = tools(&serde_json::from_str::<Vec<_>>(json.get())?, origin)?;
    }
    let mut fields = values(fields)?;
    if let Some(of_tools) = of_tools.filter(|of_tools| !of_tools.is_empty() || parsed.tools.is_empty()) {
        fields.insert(TOOLS.into(), Value::Object(values(of_tools)?));
    }
    parsed.params = settings::read(&Value::Object(fields), !parsed.tools.is_empty(), family);
    Ok(parsed)
}

open_struct! {
    BlockSaid { result: ResultSaid<'a> = "toolResult", }
}

open_struct! {
    ResultSaid { id: Str<'a> = "toolUseId", content: Vec<&'a RawValue> = "content", status: Str<'a> = "status", }
}

open_struct! {
    ToolSaid { spec: SpecSaid<'a> = "toolSpec", system: SystemTool<'a> = "systemTool", }
}

open_struct! {
    SpecSaid { name: Str<'a> = "name", description: Str<'a> = "description", schema: SchemaSaid<'a> = "inputSchema", }
}

open_struct! {
    SchemaSaid { json: &'a RawValue = "json", }
}

open_struct! {
    SystemTool { name: Str<'a> = "name", }
}

/// Decodes a tool result block.
pub(super) fn result(json: &RawValue, origin: &Origin) -> Option<Answer> {
    let said = serde_json::from_str::<BlockSaid<'_>>(json.get()).ok()?.result?;
    let parts = read::parts(&said.content.unwrap_or_default(), origin);
    let is_error = text(&said.status) == "error";
    Some((said.id.unwrap_or_default().0.into_owned(), parts, is_error))
}

/// Decodes the tools, each of which keeps its JSON if its encoding differs from it. A cache point
/// marks the tool before it. Unknown tools run at the provider.
fn tools(tools: &[&RawValue], origin: &Origin) -> serde_json::Result<ToolSpecs> {
    let mut specs: Vec<ToolSpec> = Vec::new();
    for json in tools {
        match (mark_of(json), specs.last_mut()) {
            (Some(mark), Some(spec)) if spec.cache.is_none() => spec.cache = Some(mark),
            _ => specs.push(tool(json, origin)?),
        }
    }
    Ok(specs.into_iter().collect())
}

fn tool(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolSpec> {
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let Some(SpecSaid { name: Some(name), description, schema: Some(SchemaSaid { json: Some(schema), .. }), .. }) =
        said.spec
    else {
        let name = said.system.and_then(|tool| tool.name).unwrap_or_default();
        return Ok(ToolSpec::server_side(name.0, raw(json, origin)));
    };
    let spec = ToolSpec::new(name.0, description.unwrap_or_default().0, serde_json::from_str(schema.get())?);
    let is_exact = same(&tool_json(origin, &Rules::converse(false), &spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw(json, origin)) })
}
