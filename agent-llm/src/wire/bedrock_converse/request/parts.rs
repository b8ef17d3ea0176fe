//! Reading the instructions, the conversation and the tools of a request.

use agent_core::{History, Message, Part, SystemMessage, ToolSpec, ToolSpecs, UserMessage, message::Origin};
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;

use crate::wire::{
    bedrock_converse::{
        parts::{mark_of, parts_json},
        read,
        tools::tool_json,
    },
    json::same,
    lenient::Str,
    open_struct::open_struct,
    two_roles::reading::{Answer, Reading, raw, with_raw},
};

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
pub(super) fn instructions(json: &RawValue, origin: &Origin) -> serde_json::Result<SystemMessage> {
    let content: Vec<&RawValue> = serde_json::from_str(json.get())?;
    Ok(SystemMessage::new(read::parts(&content, origin)).with_raw(raw(json, origin)))
}

/// The conversation, repaired if no provider would take it.
pub(super) fn conversation(messages: &[&RawValue], origin: &Origin) -> serde_json::Result<History> {
    let mut reading = Reading::new(origin);
    messages.iter().try_for_each(|json| message(&mut reading, json))?;
    Ok(reading.history())
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
    let is_error = said.status.is_some_and(|status| status.0 == "error");
    Ok((said.id.unwrap_or_default().0.into_owned(), parts, is_error))
}

fn result(json: &RawValue) -> Option<ResultSaid<'_>> {
    serde_json::from_str::<BlockSaid<'_>>(json.get()).ok()?.result
}

/// The tools, each with its JSON unless it is written just so. A cache point is the mark of the tool before it. What is no
/// tool of the caller's runs at the provider.
pub(super) fn tools(tools: &[&RawValue], origin: &Origin) -> serde_json::Result<ToolSpecs> {
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
