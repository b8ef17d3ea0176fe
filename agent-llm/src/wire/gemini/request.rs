//! Lossless decoding of requests.

use agent_core::{Error, History, Result, SystemMessage, ToolSpec, message::Raw};
use serde::de::Error as _;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    GeminiCodec, conversation,
    encode::{DECLARATIONS, SYSTEM},
    messages::PARTS,
    read::user_parts,
    settings,
    wrapper::{Fields, Wrapper},
};
use crate::{
    ParsedRequest,
    error::no_request,
    wire::{
        json::raw,
        lenient::{Str, lenient},
        open_struct::open_struct,
    },
};

/// Decodes a request body. Fields that no message, tool or parameter holds are kept in `extra`.
pub(super) fn decode_request(body: &str, codec: &GeminiCodec) -> Result<ParsedRequest> {
    let unreadable = |e| -> Error { no_request("a request of generateContent", e) };
    let mut fields: Fields<'_> = serde_json::from_str(body).map_err(unreadable)?;
    let mut request = ParsedRequest::default();
    let contents = fields.get("contents").ok_or_else(|| unreadable(serde_json::Error::missing_field("contents")))?;
    if let Some(messages) = conversation::read(contents, &codec.origin) {
        request.messages = History::import(messages).0;
        fields.remove("contents");
    }
    if let Some(specs) = fields.get("tools").and_then(|json| tools(json, codec)) {
        request.tools = specs.into_iter().collect();
        fields.remove("tools");
    }
    request.system = system(&mut fields, codec);
    let fields = fields.into_iter().map(|(name, json)| (name, lenient(json)));
    let fields = Value::Object(fields.collect::<Map<_, _>>());
    if let Some(model) = fields["model"].as_str() {
        request.model = model.strip_prefix("models/").unwrap_or(model).to_owned();
    }
    let calls = request.tools.iter().any(|spec| !spec.is_server_side());
    request.params = settings::read(&fields, calls, codec);
    Ok(request)
}

/// Decodes the system prompt, with the spelling of its field.
fn system(fields: &mut Fields<'_>, codec: &GeminiCodec) -> Option<SystemMessage> {
    let name = *SYSTEM.iter().find(|name| fields.contains_key(**name))?;
    let parts = user_parts(&Wrapper::read(fields.get(name)?, &PARTS)?.items, &codec.origin);
    let field = Fields::from_iter(fields.remove_entry(name));
    let field = Raw::new(codec.origin.clone(), serde_json::value::to_raw_value(&field).ok()?);
    Some(SystemMessage::new(parts).with_raw(field))
}

open_struct! {
    Declared {
        name: Str<'a> = "name",
        description: Str<'a> = "description",
        json_schema: Value = "parametersJsonSchema" | "parameters_json_schema",
        open_api: Value = "parameters",
    }
}

/// Decodes the tools; `None` if the JSON is not a list of tools.
///
/// If a tool is not in the usual form, its first function keeps the tool's JSON, and the others are
/// part of it.
fn tools(tools: &RawValue, codec: &GeminiCodec) -> Option<Vec<ToolSpec>> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).ok()?;
    let (mut specs, mut has_functions) = (Vec::new(), false);
    for tool in tools {
        let functions = Wrapper::read(tool, &DECLARATIONS).filter(|functions| !functions.items.is_empty());
        let Some(functions) = functions else {
            let fields: Fields<'_> = serde_json::from_str(tool.get()).ok()?;
            let name = fields.into_keys().find(|name| !DECLARATIONS.contains(&name.as_str()));
            specs.push(ToolSpec::server_side(name.unwrap_or_default(), raw(tool, &codec.origin)));
            continue;
        };
        let is_plain = functions.fields.is_empty() && functions.is_named(DECLARATIONS[0]) && !has_functions;
        for (at, declaration) in functions.items.iter().enumerate() {
            let as_sent = match at == 0 && !is_plain {
                true => Raw::new(codec.origin.clone(), functions.with(&[declaration])),
                false => raw(declaration, &codec.origin),
            };
            specs.push(spec(declaration)?.with_raw(as_sent));
        }
        has_functions = true;
    }
    Some(specs)
}

fn spec(declaration: &RawValue) -> Option<ToolSpec> {
    let said: Declared<'_> = serde_json::from_str(declaration.get()).ok()?;
    let parameters = said.json_schema.or(said.open_api).unwrap_or_else(|| json!({"type": "object"}));
    Some(ToolSpec::new(said.name?.0, said.description.unwrap_or_default().0, parameters))
}
