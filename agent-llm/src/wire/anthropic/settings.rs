//! Request settings other than the conversation and the tools, in both directions.

use agent_core::{ModelParams, Result, ToolChoice};
#[cfg(feature = "requests")]
use agent_core::{OutputFormat, model::Effort};
use serde_json::{Value, json};

use crate::wire::{claude::Claude, fields::Fields, schema::closed::closed, settings::Names};
#[cfg(feature = "requests")]
use crate::wire::{
    claude::word,
    settings::{tool_choice, with_rest},
};

const NAMES: Names =
    Names { max_tokens: "max_tokens", temperature: "temperature", top_p: "top_p", stop: "stop_sequences", seed: None };

/// Encodes the settings, after the initial `fields` of a request.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) for settings that the API rejects for
/// a model that thinks.
pub(super) fn settings(
    params: &ModelParams,
    has_tools: bool,
    claude: &Claude,
    mut fields: Fields<'static>,
) -> Result<Fields<'static>> {
    NAMES.write(params, params.max_tokens.or(Some(claude.max_tokens)), &mut fields);
    // The API rejects a tool choice without tools.
    if has_tools {
        fields.say("tool_choice", choice(params.tool_choice.as_ref(), params.parallel_tool_calls == Some(false)));
    }
    let mut told = claude.thinking(params, has_tools)?;
    // The API only supports output formats with a schema.
    if let Some(output) = params.output.as_ref().filter(|output| !output.schema.is_null()) {
        let format = json!({"type": "json_schema", "schema": closed(&output.schema)});
        told.entry("output_config").or_insert_with(|| json!({}))["format"] = format;
    }
    for name in ["thinking", "output_config"] {
        fields.say(name, told.remove(name));
    }
    Ok(fields)
}

fn choice(choice: Option<&ToolChoice>, is_one_at_a_time: bool) -> Option<Value> {
    let mut said = match choice {
        None if !is_one_at_a_time => return None,
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Tool(name)) => json!({"type": "tool", "name": name}),
        _ => json!({"type": "auto"}),
    };
    if is_one_at_a_time {
        said["disable_parallel_tool_use"] = true.into();
    }
    Some(said)
}

/// Decodes the `fields` whose encoding after this `head` is unchanged; `extra` receives the others.
#[cfg(feature = "requests")]
pub(super) fn read(
    fields: &Value,
    has_tools: bool,
    claude: &Claude,
    head: impl Fn() -> Fields<'static>,
) -> ModelParams {
    let written =
        |params: &ModelParams| settings(params, has_tools, claude, head()).map_or(Value::Null, |fields| json!(fields));
    let mut params = NAMES.read(fields);
    let said = &fields["tool_choice"];
    for is_one_at_a_time in [false, true] {
        let write = |known: &ToolChoice| choice(Some(known), is_one_at_a_time).unwrap_or_default();
        if let Some(known) = tool_choice(said, said["name"].as_str(), write).filter(|_| has_tools) {
            params.tool_choice = Some(known);
            params.parallel_tool_calls = is_one_at_a_time.then_some(false);
            break;
        }
    }
    let (mut told, config) = (params.clone(), &fields["output_config"]);
    told.effort =
        [Effort::Low, Effort::Medium, Effort::High].into_iter().find(|effort| config["effort"] == word(*effort));
    told.output =
        config.pointer("/format/schema").map(|schema| OutputFormat::new("output", schema.clone()).strict(true).into());
    let is_exact = |name| written(&told).get(name) == fields.get(name);
    if ["thinking", "output_config"].into_iter().all(is_exact) {
        params = told;
    }
    with_rest(params.clone(), &written(&params), fields)
}
