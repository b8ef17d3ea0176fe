//! Everything of a request but its messages and its tools, in both directions.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Effort};
use serde_json::{Value, json};

use crate::wire::{fields::Fields, json::present, settings::said};

/// The settings that need no other form, by our names and by the API's.
const PLAIN: [(&str, &str); 5] = [
    ("temperature", "temperature"),
    ("top_p", "p"),
    ("max_tokens", "max_tokens"),
    ("stop", "stop_sequences"),
    ("seed", "seed"),
];

/// The fields of the request. The server refuses a word about tools where there are none.
pub(super) fn fields<'a>(model: &'a str, params: &ModelParams, has_tools: bool, stream: bool) -> Fields<'a> {
    let (mut said, mut fields) = (said(params), Fields::default());
    fields.say("model", Some(model));
    PLAIN.into_iter().for_each(|(own, name)| fields.say(name, said.remove(own)));
    fields.say("tool_choice", params.tool_choice.as_ref().filter(|_| has_tools).and_then(choice));
    let thinking = match params.thinking_tokens {
        Some(0) => Some(thinking(Effort::None)),
        Some(most) => Some(json!({"type": "enabled", "token_budget": most})),
        None => params.effort.map(thinking),
    };
    fields.say("thinking", thinking);
    fields.say("response_format", params.output.as_deref().map(format));
    fields.say("stream", stream.then_some(true));
    fields
}

/// None for what the model does when nothing is said.
fn choice(choice: &ToolChoice) -> Option<&'static str> {
    match choice {
        ToolChoice::None => Some("NONE"),
        ToolChoice::Required | ToolChoice::Tool(_) => Some("REQUIRED"),
        _ => None,
    }
}

fn thinking(effort: Effort) -> Value {
    match effort {
        Effort::None => json!({"type": "disabled"}),
        Effort::Minimal => json!({"type": "enabled", "token_budget": 256}),
        Effort::Low => json!({"type": "enabled", "token_budget": 1_024}),
        Effort::Medium => json!({"type": "enabled", "token_budget": 4_096}),
        _ => json!({"type": "enabled"}),
    }
}

fn format(output: &OutputFormat) -> Value {
    present(json!({"type": "json_object", "json_schema": output.schema}))
}

/// What the fields of a request say, as far as they say what every provider can be told.
#[cfg(feature = "requests")]
pub(super) fn params(said: &serde_json::Map<String, Value>) -> ModelParams {
    let choice = |said: &Value| match said.as_str() {
        Some("NONE") => json!(ToolChoice::None),
        Some("REQUIRED") => json!(ToolChoice::Required),
        _ => Value::Null,
    };
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
    let effort = efforts.into_iter().find(|effort| said.get("thinking") == Some(&thinking(*effort)));
    let output = |said: &Value| match (said["type"] == "json_object", said.get("json_schema")) {
        (true, Some(schema @ Value::Object(_))) => json!(OutputFormat::new("output", schema.clone())),
        (true, None) => json!(OutputFormat::json()),
        _ => Value::Null,
    };
    let plain = PLAIN.map(|(own, name)| (own, said.get(name).cloned()));
    crate::wire::settings::read(plain.into_iter().chain([
        ("tool_choice", said.get("tool_choice").map(choice)),
        ("effort", effort.map(|effort| json!(effort))),
        ("output", said.get("response_format").map(output)),
    ]))
}
