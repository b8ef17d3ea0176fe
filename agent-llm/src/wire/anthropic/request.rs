//! Reading requests.

use std::collections::BTreeMap;

use agent_core::{Message, Part, Result, SystemMessage, ToolSpec, UserMessage, message::Origin};
use serde::{Deserialize, de::Error as _};
use serde_json::{Map, Value, value::RawValue};

use super::{AnthropicCodec, encode::function, parts::part_json, read, settings};
use crate::{
    ParsedRequest,
    error::no_request,
    wire::{
        json::same,
        lenient::{Content, Str},
        open_struct::open_struct,
        two_roles::reading::{Answer, Reading, raw, with_raw},
    },
};

/// Reads a request; the raw JSON of its messages and tools, and `extra`, keep what is not understood.
pub(super) fn decode_request(body: &str, codec: &AnthropicCodec) -> Result<ParsedRequest> {
    parsed(body, codec).map_err(|e| no_request("a request for a message", e))
}

fn parsed(body: &str, codec: &AnthropicCodec) -> serde_json::Result<ParsedRequest> {
    let origin = &codec.origin;
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(body)?;
    fields.retain(|_, json| json.get() != "null");
    let mut parsed = ParsedRequest::default();
    if let Some(model) = fields.remove("model") {
        parsed.model = serde_json::from_str(model.get())?;
    }
    parsed.system = fields.remove("system").map(|json| instructions(json, origin)).transpose()?;
    let mut reading = Reading::new(origin);
    let messages: Vec<&RawValue> = serde_json::from_str(fields.remove("messages").map_or("null", RawValue::get))?;
    messages.into_iter().try_for_each(|json| message(&mut reading, json))?;
    parsed.messages = reading.history();
    let tools: Vec<&RawValue> = serde_json::from_str(fields.remove("tools").map_or("[]", RawValue::get))?;
    parsed.tools = tools.into_iter().map(|json| tool(json, origin)).collect::<serde_json::Result<_>>()?;
    let fields = fields.into_iter().map(|(name, json)| Ok((name, serde_json::from_str(json.get())?)));
    let fields = Value::Object(fields.collect::<serde_json::Result<Map<_, _>>>()?);
    parsed.stream = fields["stream"] == true;
    let head = || codec.profile.head("", &[]);
    parsed.params = settings::read(&fields, !parsed.tools.is_empty(), &codec.claude, head);
    Ok(parsed)
}

#[derive(Deserialize)]
struct Spoken<'a> {
    #[serde(borrow)]
    role: Str<'a>,
    #[serde(borrow)]
    content: Content<'a>,
}

open_struct! {
    ResultSaid {
        _kind: &'a RawValue = "type",
        tool_use_id: Str<'a> = "tool_use_id",
        content: Content<'a> = "content",
        is_error: bool = "is_error",
    }
}

open_struct! {
    ToolSaid {
        kind: Str<'a> = "type",
        name: Str<'a> = "name",
        mcp_server_name: Str<'a> = "mcp_server_name",
        description: Str<'a> = "description",
        input_schema: &'a RawValue = "input_schema",
    }
}

/// The system prompt: a text or a list of texts.
fn instructions(json: &RawValue, origin: &Origin) -> serde_json::Result<SystemMessage> {
    let content: Content<'_> = serde_json::from_str(json.get())?;
    Ok(SystemMessage::new(parts(&content, origin)).with_raw(raw(json, origin)))
}

fn message(reading: &mut Reading<'_>, json: &RawValue) -> serde_json::Result<()> {
    let (origin, spoken) = (reading.origin, serde_json::from_str::<Spoken<'_>>(json.get())?);
    match (&*spoken.role.0, &spoken.content) {
        ("assistant", _) => reading.assistant(json, read::turn(json.get(), origin)?)?,
        ("system", content) => {
            let message = SystemMessage::new(parts(content, origin)).with_raw(raw(json, origin));
            reading.push(Message::System(message));
        }
        ("user", Content::Parts(blocks)) if blocks.iter().any(|block| is_result(block)) => {
            reading.answers(blocks, |json| answer(json, origin));
        }
        ("user", content) => {
            let message = UserMessage::new(parts(content, origin)).with_raw(raw(json, origin));
            reading.push(Message::User(message));
        }
        (role, _) => return Err(serde_json::Error::custom(format!("there is no role '{role}'"))),
    }
    Ok(())
}

/// A result, or another part with its JSON unless it is written just so.
fn answer(json: &RawValue, origin: &Origin) -> Result<Answer, Part> {
    let Some(said) = serde_json::from_str::<ResultSaid<'_>>(json.get()).ok().filter(|_| is_result(json)) else {
        let part = read::part(json, origin);
        let is_exact = same(&part_json(origin, &part), json);
        return Err(if is_exact { part } else { with_raw(part, json, origin) });
    };
    let parts = said.content.map(|content| parts(&content, origin)).unwrap_or_default();
    Ok((said.tool_use_id.unwrap_or_default().0.into_owned(), parts, said.is_error.unwrap_or_default()))
}

fn is_result(json: &RawValue) -> bool {
    read::kind(json.get()) == "tool_result"
}

fn parts(content: &Content<'_>, origin: &Origin) -> Vec<Part> {
    match content {
        Content::Text(text) => vec![Part::text(&**text)],
        Content::Parts(parts) => parts.iter().map(|json| read::part(json, origin)).collect(),
    }
}

/// A tool, with its JSON unless it is written just so. One without a schema runs at the provider.
fn tool(json: &RawValue, origin: &Origin) -> serde_json::Result<ToolSpec> {
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let name = said.name.or(said.mcp_server_name).or(said.kind).unwrap_or_default().0;
    let mut spec = match said.input_schema {
        Some(schema) => {
            let description = said.description.unwrap_or_default().0;
            ToolSpec::new(name, description, serde_json::from_str(schema.get())?)
        }
        None => return Ok(ToolSpec::server_side(name, raw(json, origin))),
    };
    spec.cache = read::cache(json);
    let is_exact = same(&function(&spec), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw(json, origin)) })
}
