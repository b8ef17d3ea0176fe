//! Decoding of requests.

use agent_core::{Result, ToolSpec, message::Origin};
use serde_json::{Value, value::RawValue};

use super::{AnthropicCodec, encode::function, messages::Messages, read, settings};
use crate::{
    ParsedRequest,
    error::no_request,
    wire::{
        alternating_roles::reading::{Answer, fields, read_parts, take_request, values},
        json::{raw, same},
        lenient::{Content, Str, kind},
        open_struct::open_struct,
    },
};

/// Decodes a request; the raw JSON of its messages and tools, and `extra`, keep unknown content.
pub(super) fn decode_request(body: &str, codec: &AnthropicCodec) -> Result<ParsedRequest> {
    parsed(body, codec).map_err(|e| no_request("a request for a message", e))
}

fn parsed(body: &str, codec: &AnthropicCodec) -> serde_json::Result<ParsedRequest> {
    let mut fields = fields(body)?;
    if !fields.contains_key("messages") {
        return Err(serde::de::Error::missing_field("messages"));
    }
    let mut parsed = take_request::<Messages>(&mut fields, &codec.origin)?;
    let tools: Vec<&RawValue> = serde_json::from_str(fields.remove("tools").map_or("[]", RawValue::get))?;
    parsed.tools = tools.into_iter().map(|json| tool(json, codec)).collect::<serde_json::Result<_>>()?;
    fields.retain(|name, json| name != "stream" || json.get() != "false");
    let fields = Value::Object(values(fields)?);
    parsed.stream = fields["stream"] == true;
    let head = || codec.profile.head("", &[]);
    parsed.params = settings::read(&fields, !parsed.tools.is_empty(), &codec.claude, head);
    Ok(parsed)
}

open_struct! {
    ResultSaid { tool_use_id: Str<'a> = "tool_use_id", content: Content<'a> = "content", is_error: bool = "is_error", }
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

/// Decodes a tool result block.
pub(super) fn result(json: &RawValue, origin: &Origin) -> Option<Answer> {
    let said: ResultSaid<'_> = serde_json::from_str(json.get()).ok().filter(|_| kind(json) == "tool_result")?;
    let parts = said.content.map(|content| read_parts::<Messages>(&content, origin)).unwrap_or_default();
    Some((said.tool_use_id.unwrap_or_default().0.into_owned(), parts, said.is_error.unwrap_or_default()))
}

/// Decodes a tool, which keeps its JSON if its encoding differs from it. A tool without a schema
/// runs at the provider.
fn tool(json: &RawValue, codec: &AnthropicCodec) -> serde_json::Result<ToolSpec> {
    let AnthropicCodec { origin, rules, .. } = codec;
    let said: ToolSaid<'_> = serde_json::from_str(json.get())?;
    let name = said.name.or(said.mcp_server_name).or(said.kind).unwrap_or_default().0;
    let Some(schema) = said.input_schema else { return Ok(ToolSpec::server_side(name, raw(json, origin))) };
    let description = said.description.unwrap_or_default().0;
    let mut spec = ToolSpec::new(name, description, serde_json::from_str(schema.get())?);
    spec.cache = read::cache(json);
    let is_exact = same(&function(&spec, rules), json);
    Ok(if is_exact { spec } else { spec.with_raw(raw(json, origin)) })
}
