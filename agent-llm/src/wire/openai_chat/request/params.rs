//! From a request's settings to parameters.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Effort};
use serde_json::{Map, Value};

use crate::wire::openai_chat::{profile::Profile, settings::LIMITS};

/// What the fields of a request say, as far as they say what every provider can be told.
pub(super) fn read(said: &Map<String, Value>, profile: &Profile) -> ModelParams {
    let get = |usual| said.get(profile.name_of(usual)?);
    let mut params = ModelParams::default();
    params.temperature = get("temperature").and_then(Value::as_f64);
    params.top_p = get("top_p").and_then(Value::as_f64);
    let limits = LIMITS.iter().filter_map(|name| said.get(*name));
    params.max_tokens = get("max_tokens").into_iter().chain(limits).find_map(Value::as_u64);
    params.stop = get("stop").map(texts).unwrap_or_default();
    params.seed = get("seed").and_then(Value::as_i64);
    params.tool_choice = get("tool_choice").and_then(tool_choice);
    params.parallel_tool_calls = get("parallel_tool_calls").and_then(Value::as_bool);
    params.effort = EFFORTS.into_iter().find(|effort| match profile.effort.get(effort) {
        Some(own) => own.iter().all(|(name, value)| said.get(name) == Some(value)),
        None if profile.known(*effort) != *effort => false,
        None => get("reasoning_effort").is_some_and(|word| serde_json::to_value(effort).is_ok_and(|own| own == *word)),
    });
    params.output = get("response_format").and_then(output).map(Into::into);
    params
}

/// The efforts, the words that servers read alike last.
const EFFORTS: [Effort; 7] =
    [Effort::High, Effort::Medium, Effort::Low, Effort::Minimal, Effort::None, Effort::XHigh, Effort::Max];

/// A text, or a list of texts; none if it is anything else.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            let texts: Option<_> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            texts.unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn tool_choice(value: &Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required" | "any") => Some(ToolChoice::Required),
        Some(_) => None,
        None => value.pointer("/function/name")?.as_str().map(|name| ToolChoice::Tool(name.to_owned())),
    }
}

fn output(value: &Value) -> Option<OutputFormat> {
    if value["type"] == "json_object" {
        return Some(OutputFormat::json());
    }
    let said = value.get("json_schema")?;
    let schema = said.get("schema").filter(|schema| schema.is_object())?;
    let mut format = OutputFormat::new(said.get("name")?.as_str()?, schema.clone());
    format.description = said.get("description").and_then(Value::as_str).map(str::to_owned);
    Some(format.strict(said["strict"] == true))
}
