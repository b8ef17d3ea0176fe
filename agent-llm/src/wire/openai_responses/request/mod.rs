//! Reading requests.

mod tools;
mod turns;

use agent_core::{
    Error, ErrorKind, History, Message, ModelParams, OutputFormat, Part, Result, Retry, SystemMessage, ToolChoice,
    UserMessage, message::Raw, model::Effort,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use self::{tools::read_tool, turns::turns};
use super::{messages::Manner, read::items, settings::Settings};
use crate::{
    ParsedRequest, Profile,
    wire::{json::laid_over, lenient::Str, open_struct::open_struct},
};

open_struct! {
    RequestSaid {
        model: Str<'a> = "model",
        input: &'a RawValue = "input",
        tools: &'a RawValue = "tools",
        stream: &'a RawValue = "stream",
    }
}

#[derive(Deserialize)]
struct Format {
    r#type: String,
    #[serde(default)]
    name: String,
    description: Option<String>,
    #[serde(default)]
    schema: Value,
    strict: Option<bool>,
}

/// Reads the body of a request.
pub(super) fn read(body: &str, profile: &Profile, manner: &Manner) -> Result<ParsedRequest> {
    let refused = |what: &'static str| Error::new(ErrorKind::InvalidRequest, what).with_retry(Retry::Permanent);
    let unreadable = |e| refused("the body is not the JSON of a request to OpenAI Responses").with_source(e);
    let said: RequestSaid<'_> = serde_json::from_str(body).map_err(unreadable)?;
    let model = said.model.map(|model| model.0.into_owned()).unwrap_or_default();
    let mut parsed = ParsedRequest { model, ..ParsedRequest::default() };
    let mut rest = Value::Null;
    for (name, json) in &said.rest {
        rest[&*name.0] = serde_json::from_str(json.get()).map_err(unreadable)?;
    }
    match said.input.map(|json| (json, json.get().as_bytes().first())) {
        Some((text, Some(b'"'))) => parsed.messages = History::import([plain(text, manner)]).0,
        Some((list, Some(b'['))) if list.get() != "[]" => {
            parsed.messages = turns(&items(list.get()), &manner.origin);
        }
        Some((other, _)) => rest["input"] = serde_json::from_str(other.get()).map_err(unreadable)?,
        None => {}
    }
    match said.tools.map(|json| (json, serde_json::from_str::<Vec<&RawValue>>(json.get()))) {
        Some((_, Ok(tools))) if !tools.is_empty() => {
            parsed.tools = tools.into_iter().map(|json| read_tool(json, manner)).collect();
        }
        Some((other, _)) => rest["tools"] = serde_json::from_str(other.get()).map_err(unreadable)?,
        None => {}
    }
    match said.stream.map(RawValue::get) {
        Some("true") => parsed.stream = true,
        Some("false") | None => {}
        Some(other) => rest["stream"] = serde_json::from_str(other).map_err(unreadable)?,
    }
    parsed.system = rest["instructions"].as_str().map(|text| SystemMessage::new(vec![Part::text(text)]));
    parsed.params = params(&rest);
    let written = Settings::new(parsed.system.as_ref(), &parsed.tools, &parsed.params, parsed.stream, profile, manner);
    let written = serde_json::to_value(written).map_err(unreadable)?;
    if let Some(Value::Object(extra)) = laid_over(&written, &rest) {
        parsed.params.extra = extra;
    }
    Ok(parsed)
}

/// An input that is a text alone.
fn plain(json: &RawValue, manner: &Manner) -> Message {
    let text: String = serde_json::from_str(json.get()).unwrap_or_default();
    Message::User(UserMessage::new(vec![Part::text(text)]).with_raw(Raw::new(manner.origin.clone(), json.to_owned())))
}

/// What is understood of the fields that say how to answer.
fn params(said: &Value) -> ModelParams {
    let mut params = ModelParams::default();
    params.temperature = said["temperature"].as_f64();
    params.top_p = said["top_p"].as_f64();
    params.max_tokens = said["max_output_tokens"].as_u64();
    params.seed = said["seed"].as_i64();
    params.parallel_tool_calls = said["parallel_tool_calls"].as_bool();
    params.effort = said.pointer("/reasoning/effort").and_then(|effort| Effort::deserialize(effort).ok());
    params.tool_choice = match (said["tool_choice"].as_str(), &said["tool_choice"]["name"]) {
        (Some("auto"), _) => Some(ToolChoice::Auto),
        (Some("none"), _) => Some(ToolChoice::None),
        (Some("required"), _) => Some(ToolChoice::Required),
        (None, Value::String(name)) => Some(ToolChoice::Tool(name.clone())),
        _ => None,
    };
    let format = said.pointer("/text/format").and_then(|format| Format::deserialize(format).ok());
    params.output = format.and_then(output).map(Into::into);
    params
}

fn output(format: Format) -> Option<OutputFormat> {
    match format.r#type.as_str() {
        "json_object" => Some(OutputFormat::json()),
        "json_schema" => {
            let output = OutputFormat::new(format.name, format.schema).strict(format.strict.unwrap_or_default());
            Some(format.description.into_iter().fold(output, OutputFormat::with_description))
        }
        _ => None,
    }
}
