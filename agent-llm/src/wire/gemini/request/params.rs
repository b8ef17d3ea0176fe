//! From a request's settings to parameters.

use std::sync::Arc;

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Effort};
use serde_json::{Map, Value, json};

use crate::wire::gemini::{
    profile::GeminiSchemas,
    schema::open_api,
    settings::{JSON, Settings, Terms, Thinking},
};

/// What an answer's form is called, where the API has no name for it.
const FORM: &str = "answer";

/// Reads parameters in the spelling in which they are written. What they would not write again as it stands in `fields` is
/// kept in `extra`, with fields in the other spelling.
pub(super) fn read(fields: Map<String, Value>, calls: bool, terms: Terms<'_>) -> ModelParams {
    let config = fields.get("generationConfig").unwrap_or(&Value::Null);
    let mut params = ModelParams::default();
    params.temperature = config["temperature"].as_f64();
    params.top_p = config["topP"].as_f64();
    params.max_tokens = config["maxOutputTokens"].as_u64();
    params.seed = config["seed"].as_i64();
    params.stop = serde_json::from_value(config["stopSequences"].clone()).unwrap_or_default();
    params.effort = effort(&config["thinkingConfig"], terms);
    params.output = output(config, terms).map(Arc::new);
    params.tool_choice = fields.get("toolConfig").filter(|_| calls).and_then(tool_choice);
    let written = Settings::new(&params, calls, terms).with(&Map::new());
    params.extra = fields.into_iter().filter_map(|(name, value)| unsaid(name, value, &written)).collect();
    params
}

/// What of a field is not `written` already.
fn unsaid(name: String, value: Value, written: &Map<String, Value>) -> Option<(String, Value)> {
    match (value, written.get(&name)) {
        (Value::Object(fields), Some(Value::Object(written))) => {
            let rest: Map<_, _> = fields.into_iter().filter_map(|(name, value)| unsaid(name, value, written)).collect();
            (!rest.is_empty()).then_some((name, rest.into()))
        }
        (Value::Number(said), Some(Value::Number(written))) if said.as_f64() == written.as_f64() => None,
        (value, Some(written)) if value == *written => None,
        (value, _) => Some((name, value)),
    }
}

/// The effort that is told in these words.
fn effort(thinking: &Value, terms: Terms<'_>) -> Option<Effort> {
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
    efforts.into_iter().find(|effort| *thinking == json!(Thinking::of(*effort, terms)))
}

fn output(config: &Value, terms: Terms<'_>) -> Option<OutputFormat> {
    if config["responseMimeType"] != JSON {
        return None;
    }
    let schema = match terms.profile.schemas {
        GeminiSchemas::JsonSchema => &config["responseJsonSchema"],
        GeminiSchemas::OpenApi => &config["responseSchema"],
    };
    let is_written_alike =
        schema.is_null() || terms.profile.schemas == GeminiSchemas::JsonSchema || open_api(schema) == *schema;
    is_written_alike.then(|| OutputFormat::new(FORM, schema.clone()))
}

fn tool_choice(config: &Value) -> Option<ToolChoice> {
    let calling = config["functionCallingConfig"].as_object()?;
    let names = calling.get("allowedFunctionNames").and_then(Value::as_array).map(Vec::as_slice);
    match (calling.get("mode")?.as_str()?, names) {
        ("AUTO", None) => Some(ToolChoice::Auto),
        ("NONE", None) => Some(ToolChoice::None),
        ("ANY", None) => Some(ToolChoice::Required),
        ("ANY", Some([Value::String(name)])) => Some(ToolChoice::Tool(name.clone())),
        _ => None,
    }
}
