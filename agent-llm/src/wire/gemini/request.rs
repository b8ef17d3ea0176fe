//! Reading requests, so that encoding them again loses nothing.

use std::collections::BTreeMap;

use agent_core::{Error, History, Result, SystemMessage, ToolSpec};
use serde::de::Error as _;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    GeminiCodec, conversation,
    encode::{DECLARATIONS, SYSTEM},
    read::user_part,
    settings,
    wrapper::Wrapper,
};
use crate::{
    ParsedRequest,
    error::no_request,
    wire::{json::raw_text, lenient::Str, open_struct::open_struct},
};

pub(super) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads the body of a request. Fields that no message, tool or parameter holds are kept in `extra`.
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
    let fields = fields.into_iter().map(|(name, json)| (name, serde_json::from_str(json.get()).unwrap_or_default()));
    let fields = Value::Object(fields.collect::<Map<_, _>>());
    if let Some(model) = fields["model"].as_str() {
        request.model = model.strip_prefix("models/").unwrap_or(model).to_owned();
    }
    let calls = request.tools.iter().any(|spec| !spec.is_server_side());
    request.params = settings::read(&fields, calls, codec);
    Ok(request)
}

/// The system prompt, with the spelling of its field.
fn system(fields: &mut Fields<'_>, codec: &GeminiCodec) -> Option<SystemMessage> {
    let name = *SYSTEM.iter().find(|name| fields.contains_key(**name))?;
    let json = *fields.get(name)?;
    let parts = Wrapper::read(json.get(), &["parts"])?.items;
    fields.remove(name);
    let parts = parts.into_iter().map(|part| user_part(part, &codec.origin)).collect();
    let field = format!("{{\"{name}\":{}}}", json.get());
    Some(SystemMessage::new(parts).with_raw(raw_text(&field, &codec.origin)))
}

open_struct! {
    Declared {
        name: Str<'a> = "name",
        description: Str<'a> = "description",
        json_schema: Value = "parametersJsonSchema" | "parameters_json_schema",
        open_api: Value = "parameters",
    }
}

/// The tools; none if the JSON is not a list of them.
///
/// The first function of a tool that is not as tools usually are keeps the tool's JSON, which the others join.
fn tools(tools: &RawValue, codec: &GeminiCodec) -> Option<Vec<ToolSpec>> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).ok()?;
    let mut specs = Vec::new();
    let mut has_functions = false;
    for tool in tools {
        let functions = Wrapper::read(tool.get(), &DECLARATIONS).filter(|functions| !functions.items.is_empty());
        let Some(functions) = functions else {
            let name = Wrapper::fields(tool.get())?.into_keys().find(|name| !DECLARATIONS.contains(&name.as_str()));
            specs.push(ToolSpec::server_side(name.unwrap_or_default(), raw_text(tool.get(), &codec.origin)));
            continue;
        };
        let is_plain = functions.fields.is_empty() && functions.is_named(DECLARATIONS[0]) && !has_functions;
        for (at, declaration) in functions.items.iter().enumerate() {
            let json = if at == 0 && !is_plain { functions.with(&[declaration]) } else { declaration.get().to_owned() };
            specs.push(spec(declaration)?.with_raw(raw_text(&json, &codec.origin)));
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
