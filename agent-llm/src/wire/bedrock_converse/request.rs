//! Reading requests.

use std::collections::BTreeMap;

use agent_core::{Message, Part, Result, SystemMessage, ToolSpec, ToolSpecs, UserMessage, message::Origin};
use serde::{Deserialize, de::Error as _};
use serde_json::{Map, Value, value::RawValue};

use super::{
    family::Family,
    parts::{mark_of, parts_json},
    read,
    settings::{self, TOOLS},
    tools::tool_json,
};
use crate::{
    ParsedRequest,
    error::no_request,
    wire::{
        json::same,
        lenient::{Str, text},
        open_struct::open_struct,
        two_roles::reading::{Answer, Reading, raw, with_raw},
    },
};

/// Reads a request; the raw JSON of its messages and tools, and `extra`, keep what is not understood. Its model and whether it
/// is streamed are said by its address.
pub(super) fn decode_request(body: &str, origin: &Origin, family: &Family) -> Result<ParsedRequest> {
    parsed(body, origin, family).map_err(|e| no_request("a request of Converse", e))
}

fn parsed(body: &str, origin: &Origin, family: &Family) -> serde_json::Result<ParsedRequest> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(body)?;
    fields.retain(|_, json| json.get() != "null");
    let system = fields.remove("system").map(|json| instructions(json, origin)).transpose()?;
    let mut parsed = ParsedRequest { system, ..ParsedRequest::default() };
    let mut reading = Reading::new(origin);
    let messages: Vec<&RawValue> = serde_json::from_str(fields.remove("messages").map_or("[]", RawValue::get))?;
    messages.into_iter().try_for_each(|json| message(&mut reading, json))?;
    parsed.messages = reading.history();
    let mut of_tools: Option<BTreeMap<String, &RawValue>> =
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

fn values(fields: BTreeMap<String, &RawValue>) -> serde_json::Result<Map<String, Value>> {
    fields.into_iter().map(|(name, json)| Ok((name, serde_json::from_str(json.get())?))).collect()
}

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
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

/// The system prompt.
fn instructions(json: &RawValue, origin: &Origin) -> serde_json::Result<SystemMessage> {
    let content: Vec<&RawValue> = serde_json::from_str(json.get())?;
    Ok(SystemMessage::new(read::parts(&content, origin)).with_raw(raw(json, origin)))
}

fn message(reading: &mut Reading<'_>, json: &RawValue) -> serde_json::Result<()> {
    let (origin, spoken) = (reading.origin, serde_json::from_str::<Spoken<'_>>(json.get())?);
    match &*spoken.role.0 {
        "assistant" => reading.assistant(json, read::turn(json.get(), origin)?)?,
        "user" if spoken.content.iter().any(|json| result(json).is_some()) => {
            reading.answers(&spoken.content, |json| answer(json, origin));
        }
        "user" => {
            let message = UserMessage::new(read::parts(&spoken.content, origin)).with_raw(raw(json, origin));
            reading.push(Message::User(message));
        }
        role => return Err(serde_json::Error::custom(format!("there is no role '{role}'"))),
    }
    Ok(())
}

/// A result, or another part with its JSON unless it is written just so.
fn answer(json: &RawValue, origin: &Origin) -> Result<Answer, Part> {
    let Some(said) = result(json) else {
        let part = read::part(json, origin);
        let is_exact = same(&parts_json(origin, 0, std::slice::from_ref(&part)).first(), json);
        return Err(if is_exact { part } else { with_raw(part, json, origin) });
    };
    let parts = read::parts(&said.content.unwrap_or_default(), origin);
    let is_error = text(&said.status) == "error";
    Ok((said.id.unwrap_or_default().0.into_owned(), parts, is_error))
}

fn result(json: &RawValue) -> Option<ResultSaid<'_>> {
    serde_json::from_str::<BlockSaid<'_>>(json.get()).ok()?.result
}

/// The tools, each with its JSON unless it is written just so. A cache point is the mark of the tool before it. What is no
/// tool of the caller's runs at the provider.
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
    let is_exact = same(&tool_json(origin, &spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw(json, origin)) })
}
