//! From a request's settings to parameters.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Effort};
use serde_json::{Map, Value};

use crate::wire::cohere::settings::Thinking;

/// What the fields of a request say, as far as they say what every provider can be told.
pub(super) fn read(said: &Map<String, Value>) -> ModelParams {
    let mut params = ModelParams::default();
    params.temperature = said.get("temperature").and_then(Value::as_f64);
    params.top_p = said.get("p").and_then(Value::as_f64);
    params.max_tokens = said.get("max_tokens").and_then(Value::as_u64);
    params.stop = said.get("stop_sequences").and_then(texts).unwrap_or_default();
    params.seed = said.get("seed").and_then(Value::as_i64);
    params.tool_choice = match said.get("tool_choice").and_then(Value::as_str) {
        Some("NONE") => Some(ToolChoice::None),
        Some("REQUIRED") => Some(ToolChoice::Required),
        _ => None,
    };
    params.effort = said.get("thinking").and_then(effort);
    params.output = said.get("response_format").and_then(output).map(Into::into);
    params
}

pub(in crate::wire) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn effort(thinking: &Value) -> Option<Effort> {
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
    efforts.into_iter().find(|effort| serde_json::to_value(Thinking::of(*effort)).is_ok_and(|said| said == *thinking))
}

fn output(value: &Value) -> Option<OutputFormat> {
    let schema = value.get("json_schema").filter(|_| value["type"] == "json_object");
    match schema {
        Some(schema) if schema.is_object() => Some(OutputFormat::new("output", schema.clone())),
        Some(_) => None,
        None => (value["type"] == "json_object").then(OutputFormat::json),
    }
}
