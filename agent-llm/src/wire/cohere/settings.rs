//! Request settings other than messages and tools, in both directions.

use agent_core::{ModelParams, OutputFormat, ToolChoice, model::Effort};
use serde_json::{Value, json};

use crate::wire::{fields::Fields, json::present, settings::Names};

const NAMES: Names = Names {
    max_tokens: "max_tokens",
    temperature: "temperature",
    top_p: "p",
    stop: "stop_sequences",
    seed: Some("seed"),
};

/// Returns the fields of the request. The server rejects a tool choice without tools.
pub(super) fn fields<'a>(model: &'a str, params: &ModelParams, has_tools: bool, stream: bool) -> Fields<'a> {
    let mut fields = Fields::default();
    fields.say("model", Some(model));
    NAMES.write(params, params.max_tokens, &mut fields);
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

/// Returns the API's tool choice; `None` for the default.
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

/// Decodes the settings that all providers share.
#[cfg(feature = "requests")]
pub(super) fn params(said: &Value) -> ModelParams {
    let mut params = NAMES.read(said);
    let choices = [ToolChoice::None, ToolChoice::Required];
    params.tool_choice = choices.into_iter().find(|known| said["tool_choice"] == json!(choice(known)));
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
    params.effort = efforts.into_iter().find(|effort| said["thinking"] == thinking(*effort));
    let form = &said["response_format"];
    let output = match &form["json_schema"] {
        Value::Null => Some(OutputFormat::json()),
        schema @ Value::Object(_) => Some(OutputFormat::new("output", schema.clone())),
        _ => None,
    };
    params.output = output.filter(|_| form["type"] == "json_object").map(Into::into);
    params
}
